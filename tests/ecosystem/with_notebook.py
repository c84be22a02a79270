# /// script
# dependencies = ["ipykernel", "nbclient"]
# ///
"""A notebook: calls with and without `await` in one running loop, a stream, a map, a function redefined, a `Result` shown."""

import nbformat
from nbclient import NotebookClient
from scene import check, seen

CELLS = [
    '''
from SimpleLLMFunc import OpenAICompatible, llm_function
@llm_function(OpenAICompatible("m"))
async def shout(word: str) -> str:
    """Shout."""
@llm_function(OpenAICompatible("m"))
def tell(word: str) -> str:
    """Tell."""
''',
    'print("thunder" in await shout("thunder"), "rain" in tell("rain"))',
    'print("hail" in "".join([piece async for piece in shout.stream("hail")]), "snow" in "".join(tell.stream("snow")))',
    "print(len(tell.map(['a', 'b'], progress=False).rows))",
    "tell.call('wind')",
]
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
NotebookClient(book, timeout=120, kernel_name="python3").execute()
printed = ["".join(each.get("text", "") for each in cell.outputs).strip() for cell in book.cells[1:4]]
check("printed", printed, ["True True", "True True", "2"])
shown = book.cells[4].outputs[0]["data"]
check("shown", ("text/html" in shown, "wind" in shown["text/plain"]), (True, True))
seen("7 answers; the `Result` shows itself as HTML")
