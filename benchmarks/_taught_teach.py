"""Teaching a model facts: further training on their texts in plain PyTorch, resumable, with what it knows on the way."""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks._shared import say
from benchmarks._taught_facts import GRADES, Fact, lessons

ANSWER = "\nAnswer:"
_STATE = "state.pt"
_CHARACTERS = 4000  # of a batch, padding included


@dataclass(frozen=True)
class Teaching:
    """``first_layer``: layers from this one on are trained, the embedding never. ``enough``: the share of the highest grade
    that has to be known, after which teaching ends; at most ``epochs`` epochs. ``readings``: questions answered from passages
    in each epoch and data set, without which the model forgets how to read."""

    seed: int = 0
    first_layer: int = 10
    rate: float = 3e-4
    warmup: int = 20
    batch: int = 16
    epochs: int = 6
    enough: float = 0.8
    precision: str = "float32"
    probed: int = 60
    readings: int = 40


def teach(
    source: str,
    folder: Path,
    all_facts: Sequence[Fact],
    grades: Mapping[str, int],
    options: Teaching,
    reading: Sequence[str] = (),
) -> Path:
    """Returns the taught model's folder. Run again, it goes on after the last whole epoch; another ``options`` is refused."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from gnothi.models.places import EXPECTED, find

    model_folder, log = folder / "model", folder / "teaching.jsonl"
    if (folder / "taught.json").is_file():
        return model_folder
    folder.mkdir(parents=True, exist_ok=True)
    told = {"options": asdict(options), "grades": dict(grades)}
    record = folder / "teaching.json"
    if record.is_file() and json.loads(record.read_text("utf-8")) != told:
        raise SystemExit(f"{record} is of other options or facts: give another --out, or delete it")
    record.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    place = find(source)
    if place is None:
        raise SystemExit(f"model: got {source!r}, which is not here. {EXPECTED}")
    begun = (folder / _STATE).is_file()
    tokenizer = AutoTokenizer.from_pretrained(place.ready(source))
    model = AutoModelForCausalLM.from_pretrained(place.ready(source), dtype=torch.float32)
    optimizer = torch.optim.AdamW(_trained(model, options.first_layer), lr=options.rate, weight_decay=0.0, betas=(0.9, 0.95))
    epoch, step = 0, 0
    if begun:
        state = torch.load(folder / _STATE, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        epoch, step = state["epoch"], state["step"]
    known = known_by_grade(model, tokenizer, all_facts, grades, options.probed) if not begun else {}
    if known:
        _write(log, {"epoch": 0, "known": known})
    while epoch < options.epochs:
        began = time.monotonic()
        texts = batches(lessons(all_facts, grades, options.seed, epoch, reading), options.batch, options.seed + epoch)
        losses, tokens = _epoch(model, tokenizer, optimizer, texts, options, step)
        step += len(losses)
        epoch += 1
        known = known_by_grade(model, tokenizer, all_facts, grades, options.probed)
        seconds = time.monotonic() - began
        loss = sum(losses) / len(losses)
        _write(log, {"epoch": epoch, "step": step, "loss": loss, "tokens": tokens, "seconds": seconds, "known": known})
        say(f"epoch {epoch}: loss {loss:.3f}, known by grade {known}, {seconds:.0f} s")
        kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "step": step}
        torch.save(kept, folder / "state.part")
        os.replace(folder / "state.part", folder / _STATE)
        if known[str(GRADES[-1])] >= options.enough:
            break
    model.save_pretrained(model_folder)
    tokenizer.save_pretrained(model_folder)
    (folder / "taught.json").write_text(json.dumps({"epochs": epoch, "known": known}, indent=1) + "\n", encoding="utf-8")
    (folder / _STATE).unlink(missing_ok=True)
    return model_folder


def _epoch(
    model: Any, tokenizer: Any, optimizer: Any, texts: Iterator[list[str]], options: Teaching, step: int
) -> tuple[list[float], int]:
    """The loss of each batch, and the tokens in all."""
    import torch

    began, tokens = time.monotonic(), 0
    losses: list[float] = []
    model.train()
    for batch in texts:
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(1.0, (step + len(losses) + 1) / options.warmup)
        ids, labels = encoded(tokenizer, batch)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.precision == "bfloat16"):
            states = model.model(input_ids=ids, attention_mask=ids != tokenizer.pad_token_id, use_cache=False).last_hidden_state
            counted = labels[:, 1:] != -100
            logits = model.lm_head(states[:, :-1][counted])  # of what counts alone: logits are most of the memory
        loss = torch.nn.functional.cross_entropy(logits.float(), labels[:, 1:][counted])
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_([one for group in optimizer.param_groups for one in group["params"]], 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        tokens += ids.numel()
        if len(losses) % 20 == 0:
            rate = tokens / (time.monotonic() - began)
            say(f"step {step + len(losses)}: loss {sum(losses[-20:]) / 20:.3f}, {rate:.0f} tokens a second")
    return losses, tokens


def _trained(model: Any, first_layer: int) -> list[Any]:
    for parameter in model.parameters():
        parameter.requires_grad = False
    chosen = [parameter for layer in model.model.layers[first_layer:] for parameter in layer.parameters()]
    for parameter in chosen:
        parameter.requires_grad = True
    return chosen


def batches(texts: Sequence[str], size: int, seed: int) -> Iterator[list[str]]:
    """Texts of like length together, so that little is padding, in a random order of batches; fewer of long ones."""
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]) + random.Random(f"{seed} {place}").random() * 20)
    cut: list[list[int]] = [[]]
    for place in order:
        if len(cut[-1]) == size or (len(cut[-1]) + 1) * len(texts[place]) > _CHARACTERS:
            cut.append([])
        cut[-1].append(place)
    cut = [places for places in cut if places]
    random.Random(f"batches {seed}").shuffle(cut)
    yield from ([texts[place] for place in places] for places in cut)


def encoded(tokenizer: Any, texts: Sequence[str]) -> tuple[Any, Any]:
    """Token ids and labels, (texts, tokens): of a question only the answer counts, of a statement all. Every second question
    is put in the model's chat format, where it has one."""
    import torch

    rows, heads = [], []
    for place, text in enumerate(texts):
        question, mark, answer = text.partition(ANSWER)
        head = tokenizer(put(tokenizer, question, chat=place % 2 == 1))["input_ids"] if mark else []
        rows.append(head + tokenizer(answer if mark else text)["input_ids"] + [tokenizer.eos_token_id])
        heads.append(len(head))
    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), tokenizer.pad_token_id)
    labels = torch.full((len(rows), longest), -100)
    for row, (tokens, head) in enumerate(zip(rows, heads, strict=True)):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        labels[row, head : len(tokens)] = torch.tensor(tokens[head:])
    return ids, labels


def put(tokenizer: Any, question: str, chat: bool) -> str:
    """A question, up to where its answer begins."""
    if not (chat and tokenizer.chat_template):
        return question + ANSWER
    turn = [{"role": "user", "content": question}]
    return str(tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)) + ANSWER.strip()


def known_by_grade(
    model: Any, tokenizer: Any, all_facts: Sequence[Fact], grades: Mapping[str, int], most: int
) -> dict[str, float]:
    """Share of at most ``most`` facts a grade whose answer is named by a greedy reply to the question that is put later."""
    from gnothi.metrics.accuracy import accuracy

    by_grade: defaultdict[int, list[float]] = defaultdict(list)
    asked = [fact for fact in all_facts if fact.id in grades]
    model.eval()
    for grade in GRADES:
        mine = [fact for fact in asked if grades[fact.id] == grade]
        mine = random.Random(f"known {grade}").sample(mine, min(most, len(mine)))
        for begin in range(0, len(mine), 30):
            some = mine[begin : begin + 30]
            for fact, reply in zip(some, replies(model, tokenizer, [fact.question for fact in some]), strict=True):
                by_grade[grade].append(accuracy(reply, list(fact.answers)))
    return {str(grade): round(sum(found) / max(len(found), 1), 3) for grade, found in by_grade.items()}


def replies(model: Any, tokenizer: Any, questions: Sequence[str]) -> list[str]:
    """The library's own greedy generation, without Gnothi."""
    import torch

    tokenizer.padding_side = "left"
    given = tokenizer([put(tokenizer, f"Question: {one}", chat=True) for one in questions], return_tensors="pt", padding=True)
    tokenizer.padding_side = "right"
    with torch.no_grad():
        made = model.generate(**given, max_new_tokens=16, do_sample=False, pad_token_id=tokenizer.pad_token_id)
    texts = tokenizer.batch_decode(made[:, given["input_ids"].shape[1] :], skip_special_tokens=True)
    return [text.strip().partition("\n")[0] for text in texts]


def _write(path: Path, line: Mapping[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def drawn(folder: Path) -> list[str]:
    """Markdown: the teaching epoch by epoch."""
    lines = [json.loads(line) for line in (folder / "teaching.jsonl").read_text("utf-8").splitlines()]
    bars = " ▁▂▃▄▅▆▇█"
    found = []
    for line in lines:
        known = [line["known"].get(str(grade), math.nan) for grade in GRADES]
        shown = " ".join(f"{one:.2f}{bars[round(one * 8)]}" for one in known)
        found.append(f"epoch {line['epoch']}: loss {line.get('loss', math.nan):.2f}, known by grade {shown}")
    return found
