"""What any service on this stack costs: Starlette, msgspec and uvicorn, and nothing else."""

import sys

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rbmle.service.api.personalizer.bodies import Checked, PersonalizerAction, PersonalizerRank

_BODY = msgspec.json.Decoder(PersonalizerRank[PersonalizerAction, Checked])


async def rank(request: Request) -> Response:
    """Decode a rank call, and send it back."""
    body = _BODY.decode(await request.body())
    return Response(msgspec.json.encode(body), 201, media_type="application/json")


if __name__ == "__main__":
    uvicorn.run(
        Starlette(routes=[Route("/personalizer/v1.0/rank", rank, methods=["POST"])]),
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="error",
    )
