"""Whether the figures of a phase of compare.py are as they must be. It needs no Ray, so that a test can ask it."""

BURST = 12  # requests at once when something breaks, so that some are on their way
BROKEN = {'ActorDiedError', 'ActorUnavailableError'}  # what Ray says of a request whose replica has died


def verdict(figures):
    """What is wrong with a phase, a sentence each. Requests may fail only where it breaks something ('breaks')."""
    errors = {name: count for name, count in figures['outcomes'].items()
              if name != 'lost' and not name.startswith('version ')}
    wrong = []
    if figures['lost']:
        wrong.append(f"{figures['lost']} requests had no answer and no error.")
    if figures['twice']:
        wrong.append(f"{figures['twice']} requests were answered twice.")
    if errors and not figures['breaks']:
        wrong.append(f'Requests ended with errors, and nothing was broken: {errors}.')
    elif sum(errors.values()) > BURST or not errors.keys() <= BROKEN:
        wrong.append(f'At most {BURST} requests may end with {sorted(BROKEN)}, and these did: {errors}.')
    silent = [name for name, row in figures['services'].items() if not row['answered']]
    if silent:
        wrong.append(f'Services without any answer: {silent}.')
    return wrong
