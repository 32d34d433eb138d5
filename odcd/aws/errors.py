"""Translates errors of AWS, or of the connection to it, into CloudBusy or CloudRefused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ProxyConnectionError,
    TokenRetrievalError,
)

from odcd.disks.cloud import CloudBusy, CloudRefused

DEADLINE_S = 150.0
"""For one call with all its retries: no part of it should ever take this long."""
PASSING = frozenset({
    # Throttled.
    "BandwidthLimitExceeded", "EC2ThrottledException", "LimitExceededException",
    "PriorRequestNotComplete", "RequestLimitExceeded", "RequestThrottled",
    "RequestThrottledException", "SlowDown", "ThrottledException", "Throttling",
    "ThrottlingException", "TooManyRequests", "TooManyRequestsException",
    # The resource is not in the required state yet.
    "ConcurrentSnapshotLimitExceeded", "IncorrectFileSystemLifeCycleState", "IncorrectState",
    "InsufficientVolumeCapacity", "PendingSnapshotLimitExceeded", "ResourceContention",
    "ScalingActivityInProgress",
    "SnapshotCreationPerVolumeRateExceeded", "VolumeInUse",
    # The daemon's credentials are being renewed.
    "ExpiredToken", "ExpiredTokenException", "RequestExpired",
})  # fmt: skip
"""Codes of temporary errors, after which nothing was done."""
UNSENT = (ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError)
NO_CREDENTIALS = (
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    TokenRetrievalError,
)


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


@asynccontextmanager
async def asking(what: str, *fine: str) -> AsyncGenerator[None]:
    """Wrap one call. what: completes the sentence "AWS could not ...". fine: codes of errors that
    mean that the wanted state already exists."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield
    except TimeoutError as error:
        raise CloudBusy(f"AWS could not {what}: no answer", sent=True) from error
    except ClientError as error:
        if code_of(error) not in fine:
            raise _translate(what, error) from error
    except ParamValidationError:
        raise  # a bug in odc
    except UNSENT as error:
        raise CloudBusy(f"AWS could not {what}: it cannot be reached", sent=False) from error
    except NO_CREDENTIALS as error:
        raise CloudBusy(f"AWS could not {what}: {error}", sent=False) from error
    except BotoCoreError as error:
        raise CloudBusy(f"AWS could not {what}: {error}", sent=True) from error


def _translate(what: str, error: ClientError) -> CloudBusy | CloudRefused:
    code = code_of(error)
    message = " ".join(str(error.response.get("Error", {}).get("Message", "")).split())[:500]
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in PASSING:
        return CloudBusy(f"AWS could not {what}: {message} ({code})", sent=False)
    if status >= 500 or status == 429:
        return CloudBusy(f"AWS could not {what}: {message} ({code})", sent=True)
    return CloudRefused(code, f"AWS refused to {what}: {message}")
