"""A plugin of vLLM for measuring schedulers: engine steps last as on a GPU, answers have the length that was drawn.

Only time is made up. The scheduler, the KV cache with its preemptions and the HTTP server are vLLM's own, and since an
engine then sleeps for most of a step, several of them fit on few cores.

PACED_STEP_MS    what each step takes at least
PACED_TOKEN_MS   and for each token scheduled in it

A request's `vllm_xargs: {"answer_tokens": n}` ends its answer after n tokens. To everybody before the engine core the
length stays unknown, as it is of answers that end by themselves.
"""

import os
import time

from vllm.distributed.device_communicators import shm_broadcast
from vllm.v1.request import Request
from vllm.v1.worker.gpu_worker import Worker

# Between two looks of a process at what another has written; vLLM looks all the time, which takes a core each.
LOOK_SECONDS = 0.0003


def register():
    """Called in every process of vLLM, possibly more than once."""
    if getattr(Worker, "is_paced", False):
        return
    Worker.is_paced = True
    pace_steps(float(os.environ["PACED_STEP_MS"]) / 1000, float(os.environ["PACED_TOKEN_MS"]) / 1000)
    end_answers()
    shm_broadcast.sched_yield = lambda: time.sleep(LOOK_SECONDS)


def pace_steps(step_seconds, token_seconds):
    execute = Worker.execute_model

    def execute_paced(self, scheduled, *args, **kwargs):
        start = time.perf_counter()
        output = execute(self, scheduled, *args, **kwargs)
        tokens = scheduled.total_num_scheduled_tokens
        if tokens > 0:
            left = step_seconds + token_seconds * tokens - (time.perf_counter() - start)
            time.sleep(max(0, left))
        return output

    Worker.execute_model = execute_paced


def end_answers():
    create = Request.__init__

    def create_ending(self, *args, **kwargs):
        create(self, *args, **kwargs)
        extra = getattr(self.sampling_params, "extra_args", None) or {}
        if "answer_tokens" in extra:
            self.max_tokens = min(self.max_tokens, int(extra["answer_tokens"]))

    Request.__init__ = create_ending
