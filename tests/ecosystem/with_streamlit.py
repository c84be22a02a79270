# /// script
# dependencies = ["streamlit"]
# ///
"""A page with a form: `st.write` of a value, `st.write_stream` of a stream, `st.cache_data` around a function."""

from pathlib import Path

from scene import asked, check, seen
from streamlit.testing.v1 import AppTest

Path("page.py").write_text('''
import streamlit as st
from SimpleLLMFunc import OpenAICompatible, llm_function

@llm_function(OpenAICompatible("m"))
def shout(word: str) -> str:
    """Shout."""

@st.cache_data
def kept(word: str) -> str:
    return shout(word)

word = st.text_input("word")
if word:
    st.write(kept(word))
    st.write_stream(shout.stream(word))
''')
page = AppTest.from_file(str(Path("page.py").absolute()), default_timeout=60).run()
for times in (1, 2):
    page = page.text_input[0].set_value("thunder").run()
    check("exceptions", list(page.exception), [])
    check("answers on the page", ["thunder" in each.value for each in page.markdown], [True, True])
    check("requests", len(asked()), 1 + times)
    page = page.text_input[0].set_value("").run()
seen("value and stream on the page, in two runs of it; the kept value was asked for once")
