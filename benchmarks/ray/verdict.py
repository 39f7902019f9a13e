"""Whether the figures of a phase of compare.py are as they must be. It needs no Ray, so that a test can ask it."""

BURST = 12  # requests at once when something breaks, so that some are on their way
ACCEPTED_MAX = 32  # of a replica; so many end with it at most
BROKEN = {'ActorDiedError', 'ActorUnavailableError'}  # what Ray says of a request whose replica has died


def verdict(figures):
    """What is wrong with a phase, a sentence each. Requests may fail only with replicas that it breaks ('breaks')."""
    errors = {name: count for name, count in figures['outcomes'].items()
              if name != 'lost' and not name.startswith('version ')}
    wrong = []
    if figures['lost']:
        wrong.append(f"{figures['lost']} requests had no answer and no error.")
    if figures['twice']:
        wrong.append(f"{figures['twice']} requests were answered twice.")
    most = figures['breaks'] * ACCEPTED_MAX
    if errors and not most:
        wrong.append(f'Requests ended with errors, and nothing was broken: {errors}.')
    elif sum(errors.values()) > most or not errors.keys() <= BROKEN:
        wrong.append(f'At most {most} requests may end with {sorted(BROKEN)}, and these did: {errors}.')
    if figures['least'] and not figures['ranked']:
        wrong.append('LeastLatencyRouter ranked no replicas, so that another router chose them.')
    silent = [name for name, row in figures['services'].items() if not row['answered']]
    if silent:
        wrong.append(f'Services without any answer: {silent}.')
    return wrong
