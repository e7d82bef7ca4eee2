# SPDX-License-Identifier: MIT
"""Marks the batches of an unmodified PyTorch job. Owns which functions of torch.utils.data are wrapped and which marks
they make (docs/markers.md); loaded by sitecustomize when the job imports torch.utils.data.dataloader.

    worker        fetch begin n, fetch end n    from the index taken to the batch handed over
    main process  batch n                       the consumer has batch n
    main process  epoch begin e, epoch end e    an iterator is made, is exhausted or replaced

The second and further loaders of a process are named fetch.2, batch.2, epoch.2, and so on.
"""

import functools
import itertools
import os
import weakref

_LOADER = "REPRISE_TORCH_LOADER"  # tells a worker that was not forked whose it is


class Names:
    """The marks of one loader."""

    def __init__(self, number):
        end = "" if number <= 1 else ".%d" % number
        self.number = number
        self.fetch, self.batch, self.epoch = (("%s%s" % (name, end)).encode() for name in ("fetch", "batch", "epoch"))
        self.epochs = 0
        self.open_epoch = None


class IndexQueue:
    """Passes everything on; a number taken from it begins a fetch."""

    def __init__(self, queue, name, markers):
        self._reprise = queue, name, markers

    def get(self, *args, **keywords):
        queue, name, markers = self._reprise
        got = queue.get(*args, **keywords)
        if type(got) is tuple and got and type(got[0]) is int:
            markers.begin(name, got[0])
        return got

    def __getattr__(self, attribute):
        return getattr(self._reprise[0], attribute)


class DataQueue:
    """Passes everything on; a numbered batch put into it ends a fetch."""

    def __init__(self, queue, name, markers):
        self._reprise = queue, name, markers

    def put(self, item, *args, **keywords):
        queue, name, markers = self._reprise
        result = queue.put(item, *args, **keywords)
        if type(item) is tuple and item and type(item[0]) is int:
            markers.end(name, item[0])
        return result

    def __getattr__(self, attribute):
        return getattr(self._reprise[0], attribute)


def patch(dataloader, markers):
    """Raises where this PyTorch has not the parts it expects, before anything is changed."""
    loader_class = dataloader.DataLoader
    single = dataloader._SingleProcessDataLoaderIter
    multi = dataloader._MultiProcessingDataLoaderIter
    worker = dataloader._utils.worker
    make_iterator, multi_init = loader_class.__iter__, multi.__init__
    single_next, multi_next = single._next_data, multi._next_data
    worker_loop = worker._worker_loop
    numbers = itertools.count(1)
    known = weakref.WeakKeyDictionary()  # not in the loaders themselves: jobs pickle and copy those
    making = []  # the loader whose workers are being started; a fork carries it over

    def names_of(loader):
        names = known.get(loader)
        if names is None:
            names = known[loader] = Names(next(numbers))
        return names

    def end_epoch(names):
        if names.open_epoch is not None:
            markers.end(names.epoch, names.open_epoch)
            names.open_epoch = None

    @functools.wraps(make_iterator)
    def iterate(self):
        names = names_of(self)
        end_epoch(names)
        markers.begin(names.epoch, names.epochs)
        names.open_epoch = names.epochs
        names.epochs += 1
        iterator = make_iterator(self)
        iterator.__dict__["_reprise_names"] = names
        return iterator

    @functools.wraps(multi_init)
    def start_workers(self, loader, *args, **keywords):
        names = names_of(loader)
        making.append(names.number)
        before = os.environ.get(_LOADER)
        os.environ[_LOADER] = str(names.number)
        try:
            multi_init(self, loader, *args, **keywords)
        finally:
            making.pop()
            if before is None:
                del os.environ[_LOADER]
            else:
                os.environ[_LOADER] = before

    @functools.wraps(single_next)
    def next_here(self):
        names = self.__dict__.get("_reprise_names")
        if names is None:
            return single_next(self)
        number = self._num_yielded
        markers.begin(names.fetch, number)
        try:
            data = single_next(self)
        except StopIteration:
            markers.end(names.fetch, number)
            end_epoch(names)
            raise
        markers.end(names.fetch, number)
        markers.mark(names.batch, number)
        return data

    @functools.wraps(multi_next)
    def next_from_worker(self):
        names = self.__dict__.get("_reprise_names")
        try:
            data = multi_next(self)
        except StopIteration:
            if names is not None:
                end_epoch(names)
            raise
        if names is not None:
            markers.mark(names.batch, self._rcvd_idx - 1)
        return data

    # The signature's first arguments have been these since PyTorch 1.2.
    @functools.wraps(worker_loop)
    def loop(dataset_kind, dataset, index_queue, data_queue, *args, **keywords):
        number = making[-1] if making else int(os.environ.get(_LOADER) or 1)
        os.environ.pop(_LOADER, None)
        name = Names(number).fetch
        return worker_loop(dataset_kind, dataset, IndexQueue(index_queue, name, markers),
                           DataQueue(data_queue, name, markers), *args, **keywords)

    loader_class.__iter__ = iterate
    multi.__init__ = start_workers
    single._next_data, multi._next_data = next_here, next_from_worker
    worker._worker_loop = loop
