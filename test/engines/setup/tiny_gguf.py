"""Writes a llama model of random weights that has the tokenizer and chat template of another model.

tiny_gguf.py SOURCE.gguf OUT.gguf
"""

import sys

import gguf
import numpy as np

WIDTH, FEED_FORWARD, LAYERS, HEADS, KV_HEADS, CONTEXT = 64, 128, 2, 4, 2, 8192
KV_WIDTH = KV_HEADS * WIDTH // HEADS
MOSTLY_F16 = 1

source, out = sys.argv[1:3]
reader = gguf.GGUFReader(source)
writer = gguf.GGUFWriter(out, "llama")

vocabulary = len(reader.fields["tokenizer.ggml.tokens"].contents())
writer.add_name("tiny-random")
writer.add_vocab_size(vocabulary)
writer.add_context_length(CONTEXT)
writer.add_embedding_length(WIDTH)
writer.add_block_count(LAYERS)
writer.add_feed_forward_length(FEED_FORWARD)
writer.add_head_count(HEADS)
writer.add_head_count_kv(KV_HEADS)
writer.add_rope_dimension_count(WIDTH // HEADS)
writer.add_rope_freq_base(10000.0)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_file_type(MOSTLY_F16)

for name, field in reader.fields.items():
    if not name.startswith("tokenizer."):
        continue
    if field.types[0] == gguf.GGUFValueType.ARRAY:
        writer.add_array(name, field.contents())
    else:
        writer.add_key_value(name, field.contents(), field.types[0])

random = np.random.default_rng(0)


def weights(rows, columns):
    return (random.standard_normal((rows, columns)) * 0.05).astype(np.float16)


def ones():
    return np.ones(WIDTH, np.float32)


writer.add_tensor("token_embd.weight", weights(vocabulary, WIDTH))
writer.add_tensor("output_norm.weight", ones())
for layer in range(LAYERS):
    block = f"blk.{layer}."
    writer.add_tensor(block + "attn_norm.weight", ones())
    writer.add_tensor(block + "ffn_norm.weight", ones())
    writer.add_tensor(block + "attn_q.weight", weights(WIDTH, WIDTH))
    writer.add_tensor(block + "attn_k.weight", weights(KV_WIDTH, WIDTH))
    writer.add_tensor(block + "attn_v.weight", weights(KV_WIDTH, WIDTH))
    writer.add_tensor(block + "attn_output.weight", weights(WIDTH, WIDTH))
    writer.add_tensor(block + "ffn_gate.weight", weights(FEED_FORWARD, WIDTH))
    writer.add_tensor(block + "ffn_up.weight", weights(FEED_FORWARD, WIDTH))
    writer.add_tensor(block + "ffn_down.weight", weights(WIDTH, FEED_FORWARD))

writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
