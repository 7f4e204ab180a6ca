"""The process that leads a pair's ranks: torch's launcher asks how each has ended, and nobody else may."""

import multiprocessing
import os
import threading
import time

from common.isolation import worker
from common.isolation.rank_launcher import launch


def lead(line):
    """(The processes of two ranks, those that were waited for by another thread than the launcher's.)"""
    waited, wait = [], os.waitpid

    def told(pid, flag):
        waited.append((pid, threading.current_thread() is threading.main_thread()))
        return wait(pid, flag)

    os.waitpid = told  # of this process, which ends with its result
    pids = launch(rank_of_two, 2, line)
    return pids, {pid for pid, is_launcher in waited if pid in pids and not is_launcher}


def rank_of_two(line):
    import torch.distributed as dist

    dist.init_process_group("gloo")
    pids = [None, None]
    dist.all_gather_object(pids, os.getpid())
    time.sleep(0.2)  # long enough to be looked at
    return pids


def test_only_the_launcher_waits_for_a_rank():
    pids, waited = worker.call(lead)
    assert len(set(pids)) == 2 and multiprocessing.current_process().pid not in pids
    assert waited == set()
