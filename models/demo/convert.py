"""Turn a trained folder into the two shipped GGUF files with llama.cpp's own converter, unmodified.

The converter recognises a tokenizer by a hash of published ones; ours is named instead.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

TEXT = "omnitide-demo-f16.gguf"
PROJECTOR = "mmproj-omnitide-demo-f16.gguf"

_SHIM = """
import runpy, sys
source = sys.argv[1]
sys.path[:0] = [source, source + "/gguf-py"]
import conversion.base
conversion.base.TextModel.get_vocab_base_pre = lambda self, tokenizer: "qwen2"
sys.argv[:] = [source + "/convert_hf_to_gguf.py", *sys.argv[2:]]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def main() -> None:
    """Convert the text model and the projector."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="what models.demo.train wrote")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--type", default="f16", choices=["f16", "f32"])
    parser.add_argument(
        "--llama-src", default=os.environ.get("OMNITIDE_LLAMA_SRC"), help="llama.cpp's sources, as in the sdist"
    )
    options = parser.parse_args()
    if not options.llama_src:
        parser.error("name llama.cpp's sources with --llama-src or OMNITIDE_LLAMA_SRC")
    for name, extra in ((TEXT, []), (PROJECTOR, ["--mmproj"])):
        out = options.out / name.replace("f16", options.type)
        arguments = [str(options.folder), "--outfile", str(out), "--outtype", options.type, *extra]
        arguments += ["--model-name", "OmniTide demo"]
        subprocess.run([sys.executable, "-B", "-c", _SHIM, options.llama_src, *arguments], check=True)


if __name__ == "__main__":
    main()
