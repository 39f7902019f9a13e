"""The files of examples/kubernetes and examples/slurm: parsed, and what one names the other has. Nothing runs them."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SLURM = sorted((ROOT / 'examples/slurm').glob('*.sbatch'))


def documents(name):
    yaml = pytest.importorskip('yaml', reason='PyYAML is missing; tools/setup.sh installs it with the site.')
    text = (ROOT / 'examples/kubernetes' / name).read_text(encoding='utf-8')
    return {document['kind']: document for document in yaml.safe_load_all(text)}


def server_code():
    folder = ROOT / 'examples/servers/http'
    return ''.join((folder / name).read_text(encoding='utf-8') for name in ('server.cc', 'options.cc'))


def test_each_file_is_yaml_with_a_kind_and_a_name():
    files = sorted(file.name for file in (ROOT / 'examples/kubernetes').glob('*.yaml'))
    assert files == ['claim.yaml', 'prometheus.yaml', 'server.yaml']
    for file in files:
        for kind, document in documents(file).items():
            assert kind and document['apiVersion'] and document['metadata']['name'], file


def test_the_pod_claims_the_template_for_both_of_its_containers():
    pod = documents('server.yaml')['Deployment']['spec']['template']['spec']
    template = documents('claim.yaml')['ResourceClaimTemplate']
    claim, = pod['resourceClaims']
    assert claim['resourceClaimTemplateName'] == template['metadata']['name']
    request, = template['spec']['spec']['devices']['requests']
    assert request['exactly']['count'] == 1
    for container in pod['initContainers'] + pod['containers']:
        assert container['resources']['claims'] == [{'name': claim['name']}]
        volumes = {volume['name'] for volume in pod['volumes']}
        assert {mount['name'] for mount in container['volumeMounts']} <= volumes


def test_probes_and_scrapes_ask_what_the_server_answers():
    pods = documents('server.yaml')
    server, = pods['Deployment']['spec']['template']['spec']['containers']
    paths = {probe['httpGet']['path'] for probe in (server['startupProbe'], server['readinessProbe'])}
    endpoint, = documents('prometheus.yaml')['PodMonitor']['spec']['podMetricsEndpoints']
    for path in paths | {endpoint['path']}:
        assert f'Get("{path}"' in server_code()
    port, = server['ports']
    assert {endpoint['port'], pods['Service']['spec']['ports'][0]['targetPort']} == {port['name']}
    assert server['args'][server['args'].index('--port') + 1] == str(port['containerPort'])
    for option in server['args'][::2]:
        assert f'"{option}"' in server_code()
    labels = pods['Deployment']['spec']['template']['metadata']['labels']
    assert pods['Deployment']['spec']['selector']['matchLabels'] == labels == pods['Service']['spec']['selector']
    assert documents('prometheus.yaml')['PodMonitor']['spec']['selector']['matchLabels'] == labels


def test_the_pod_is_ready_only_with_the_profile_of_the_calibration():
    pod = documents('server.yaml')['Deployment']['spec']['template']['spec']
    calibrate, = pod['initContainers']
    script, = calibrate['args']
    variables = {variable['name']: variable['value'] for variable in pod['containers'][0]['env']}
    assert f"profile={variables['GPUSHARE_PROFILE']}\n" in script
    subprocess.run(['bash', '-n', '-c', script], check=True)


@pytest.mark.parametrize('file', SLURM, ids=lambda file: file.name)
def test_a_batch_script_is_shell_and_asks_for_whole_gpus(file):
    subprocess.run(['bash', '-n', str(file)], check=True)
    text = file.read_text(encoding='utf-8')
    options = re.findall(r'^#SBATCH --([\w-]+)', text, re.MULTILINE)
    assert {'nodes', 'exclusive', 'time'} <= set(options)
    assert {'gres', 'gpus-per-node'} & set(options)
    # sbatch reads no option behind the first command.
    assert text.rindex('#SBATCH') < text.index('set -euo pipefail')


def test_there_are_batch_scripts_for_one_server_and_for_ray():
    assert [file.name for file in SLURM] == ['ray.sbatch', 'server.sbatch']
