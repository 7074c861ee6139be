"""Fetches the small files of a hub id (tokenizer, templates, configs) through huggingface_hub, which caches them."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

from ..errors import InputError
from . import folder
from .files import MODEL_FILES
from .model import Model

_ID = re.compile(r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<revision>[\w./-]+))?")


def looks_like_id(spec: str) -> bool:
    """Whether `spec` has the form `owner/name` or `owner/name@REVISION`."""
    return _ID.fullmatch(spec) is not None


def read_hub(spec: str) -> Model:
    """The model of a hub id. Raises InputError with the hub's reason where its files cannot be had."""
    match = _ID.fullmatch(spec)
    if match is None:
        raise InputError("is no hub id", source=spec, mend="write owner/name or owner/name@REVISION")
    path = _fetch(match["repo"], match["revision"], spec)
    model = folder.read_folder(path, source=spec, kind="hub")
    return dataclasses.replace(model, revision=path.name)


def _fetch(repo: str, revision: str | None, spec: str) -> Path:
    import huggingface_hub
    from huggingface_hub import errors, utils

    utils.disable_progress_bars()
    try:
        return Path(
            huggingface_hub.snapshot_download(
                repo,
                revision=revision,
                allow_patterns=list(MODEL_FILES),
                endpoint=os.environ.get("HF_ENDPOINT") or None,
                cache_dir=os.environ.get("HF_HUB_CACHE") or None,
            )
        )
    except errors.GatedRepoError:
        raise _refused(
            spec, "the hub wants you to accept this model's terms first", "log in with `hf auth login`"
        ) from None
    except errors.RevisionNotFoundError:
        raise _refused(spec, f"the hub has no revision {revision}") from None
    except errors.RepositoryNotFoundError:
        raise _refused(spec, "neither a file here nor a repository on the hub (or a private one)") from None
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        cause = error.__cause__ or error
        raise _refused(spec, f"not in the cache, and the hub cannot be reached ({_short(cause)})", _OFFLINE) from None
    except (errors.HfHubHTTPError, OSError, ValueError) as error:
        raise _refused(spec, f"the hub did not hand the files over ({_short(error)})", _OFFLINE) from None


_OFFLINE = "give a local model folder, or set HF_ENDPOINT to a mirror"


def _refused(spec: str, message: str, mend: str | None = None) -> InputError:
    return InputError(message, source=spec, mend=mend)


def _short(error: BaseException) -> str:
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}"[:200]
