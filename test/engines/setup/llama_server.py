"""llama.cpp's HTTP server with metrics and slots shown, until a signal ends it."""

import argparse
import signal
import sys
import time

import xllamacpp

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--alias", required=True)
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--slots", type=int, required=True)
parser.add_argument("--slot-context", type=int, required=True)
parser.add_argument("--http-threads", type=int, required=True)
parser.add_argument("--api-key")
parser.add_argument("--embeddings", action="store_true")
options = parser.parse_args()

params = xllamacpp.CommonParams()
params.model.path = options.model
params.model_alias = {options.alias}
params.hostnames = ["127.0.0.1"]
params.port = options.port
params.n_parallel = options.slots
params.n_ctx = options.slots * options.slot_context
# More threads than cores are far slower, and there are two servers.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.n_threads_http = options.http_threads
params.endpoint_metrics = True
params.endpoint_slots = True
if options.embeddings:
    params.embedding = True
    # One vector for each text, as OpenAI's route wants it.
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
if options.api_key is not None:
    params.api_keys = [options.api_key]

server = xllamacpp.Server(params)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
while True:
    time.sleep(1)
