# SPDX-License-Identifier: MIT
"""What `reprise capture --torch` puts in front of PYTHONPATH. Owns nothing but the start: hands over to the job's own
sitecustomize, and arms reprise_torch for the moment the job imports PyTorch's data loader. Without PyTorch the cost is
one string comparison per import."""


def _start():
    import os
    import sys

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or os.curdir) != here or p == ""]

    target = "torch.utils.data.dataloader"

    class Finder:
        """Lets the others find the module and adds the hook to its loader."""

        busy = False

        @classmethod
        def find_spec(cls, name, path=None, module=None):
            if name != target or cls.busy:
                return None
            import importlib.util

            cls.busy = True
            try:
                spec = importlib.util.find_spec(name)
            finally:
                cls.busy = False
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not cls]
            loader = getattr(spec, "loader", None)
            if not hasattr(loader, "exec_module"):
                return None
            run = loader.exec_module

            def exec_module(loaded):
                run(loaded)
                _patch(here, loaded)

            loader.exec_module = exec_module
            return spec

    sys.meta_path.insert(0, Finder)


def _patch(here, loaded):
    """A hook that cannot do its work must not break the job: it says so in the recording."""
    import importlib.util
    import os

    def load(name, *where):
        spec = importlib.util.spec_from_file_location(name, os.path.join(here, *where))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    markers = None
    try:
        markers = load("_reprise_markers", os.pardir, "reprise.py")
        load("_reprise_torch", "reprise_torch.py").patch(loaded, markers)
    except Exception as error:
        if markers is not None:
            markers.mark("reprise.hook.failed: " + type(error).__name__)


def _job_own():
    """Runs the sitecustomize that this one stands before, as the interpreter would have."""
    import importlib.machinery
    import importlib.util
    import sys

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None or spec.origin == __file__:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_start()
_job_own()
