"""The user's own cluster in place of a local control plane: nothing is started.

Only asks whether the kubeconfig leads to a server that lets us in.
"""

from __future__ import annotations

from pathlib import Path

from issuesandbox.local.control_plane.errors import ControlPlaneError

_SECONDS = 5


def check_kubeconfig(path: Path) -> str:
    """Return the address of the server a kubeconfig leads to, or refuse the file."""
    import urllib3
    import yaml
    from kubernetes import client, config

    settings = client.Configuration()
    try:
        config.load_kube_config(config_file=str(path), client_configuration=settings)
        settings.retries = False
        with client.ApiClient(settings) as api:
            # A list of namespaces, not /version: that one answers without credentials too.
            client.CoreV1Api(api).list_namespace(limit=1, _request_timeout=_SECONDS)
    except client.ApiException as error:
        if error.status != 403:  # known, but without this one right
            raise _wrong(path, f"{settings.host} answered {error.status} {error.reason}") from error
    except urllib3.exceptions.HTTPError as error:
        raise _wrong(path, f"{settings.host} does not answer") from error
    except (config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError) as error:
        raise _wrong(path, str(error).splitlines()[0]) from error
    return str(settings.host)


def _wrong(path: Path, why: str) -> ControlPlaneError:
    return ControlPlaneError(
        f"the kubeconfig {path} leads to no usable cluster ({why}); "
        "correct it, or leave out --kubeconfig for a local control plane"
    )
