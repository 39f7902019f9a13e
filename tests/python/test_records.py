"""The record of a task, which decodes a field when it is read first, is a frozen dataclass like the other records."""

import copy
import dataclasses
import pickle

import pytest

import gpushare
from gpushare import abi
from gpushare.records import CompletionRecord

pytestmark = pytest.mark.usefixtures('form')


@pytest.fixture
def ticket(service, chain):
    ticket = service.submit(chain)
    ticket.wait_ok()
    return ticket


@pytest.fixture
def decoded(ticket):
    """The record with every field decoded at once."""
    return CompletionRecord.from_c(abi.gpushare_completion_record.from_buffer_copy(ticket._ended))


def test_a_record_has_every_field_of_the_struct(ticket, decoded):
    record = ticket.record()
    assert set(vars(record)) == {'_data'}  # nothing is decoded yet
    for field in dataclasses.fields(CompletionRecord):
        assert getattr(record, field.name) == getattr(decoded, field.name), field.name
        assert type(getattr(record, field.name)) is type(getattr(decoded, field.name)), field.name
    assert record.verdict is gpushare.Verdict.OK
    assert record.ticket == ticket.value
    assert record.submit_ns <= record.launch_ns <= record.complete_ns


def test_a_record_is_a_frozen_dataclass(ticket, decoded):
    record = ticket.record()
    assert record == decoded
    assert hash(record) == hash(decoded)
    assert repr(record) == repr(decoded)
    assert dataclasses.asdict(record) == dataclasses.asdict(decoded)
    later = dataclasses.replace(record, complete_ns=record.complete_ns + 1)
    assert later != record
    assert later.complete_ns == record.complete_ns + 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.verdict = gpushare.Verdict.FAILED
    with pytest.raises(AttributeError, match="'CompletionRecord' object has no attribute 'color'"):
        assert record.color


@pytest.mark.parametrize('copied', [copy.copy, copy.deepcopy, lambda record: pickle.loads(pickle.dumps(record))])
def test_a_record_is_copied_before_and_after_its_fields_are_read(ticket, decoded, copied):
    assert copied(ticket.record()) == decoded
    assert ticket.record().verdict is gpushare.Verdict.OK
    assert copied(ticket.record()) == decoded


def test_a_ticket_gives_one_record(ticket):
    record = ticket.record()
    assert ticket.wait() is record
    assert ticket.future().result(10) is record
    ticket.release()
    assert ticket.record() is record
