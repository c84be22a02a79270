"""The local web page over a trace store: `viewer_app` to mount it, `serve_page` to serve it alone."""

from SimpleLLMFunc.viewer.security import ViewerApp, new_token
from SimpleLLMFunc.viewer.server import serve_page, viewer_app

__all__ = ["ViewerApp", "serve_page", "viewer_app"]
__all__ += ["new_token"]  # for other rooms
