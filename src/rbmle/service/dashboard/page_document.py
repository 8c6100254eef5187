"""What every page begins with."""

from rbmle.service.dashboard.markup import Html, tag

TITLE = "rbmle · decision service"


def document(
    title: str, *body: Html, scripts: tuple[str, ...] = (), styles: tuple[str, ...]
) -> str:
    """Return a whole HTML document, with scripts and styles of our own server only."""
    return "<!doctype html>\n" + tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("title", title),
            tag("link", rel="icon", href="/dashboard/static/icon.svg", type="image/svg+xml"),
            [tag("link", rel="stylesheet", href=f"/dashboard/static/{file}") for file in styles],
            [tag("script", src=f"/dashboard/static/{file}", defer=True) for file in scripts],
        ),
        *body,
        lang="en",
    )
