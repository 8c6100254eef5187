"""The page that asks for a key."""

from rbmle.service.dashboard.markup import tag
from rbmle.service.dashboard.page_document import TITLE, document


def login(problem: str = "") -> str:
    """Return the form; the problem says why a key was not taken."""
    return document(
        f"Sign in · {TITLE}",
        tag(
            "body",
            tag(
                "main",
                tag("p", tag("a", "rbmle", class_="brand", href="/dashboard")),
                tag("h1", "Sign in"),
                tag("p", problem, class_="banner bad", role="alert", id="problem")
                if problem
                else "",
                tag(
                    "form",
                    tag(  # password managers keep a name with each password
                        "input", name="user", value="rbmle", autocomplete="username", hidden=True
                    ),
                    tag("label", "Key", for_="key"),
                    tag(
                        "input",
                        type="password",
                        name="key",
                        id="key",
                        required=True,
                        autofocus=True,
                        autocomplete="current-password",
                        aria_describedby="problem where" if problem else "where",
                    ),
                    tag("button", "Sign in", class_="main"),
                    method="post",
                    action="/dashboard/login",
                ),
                tag(
                    "p",
                    "A read key is enough. The keys are in the file that the service named when it started.",
                    class_="note",
                    id="where",
                ),
                class_="login panel",
            ),
        ),
        styles=("dashboard.css",),
    )
