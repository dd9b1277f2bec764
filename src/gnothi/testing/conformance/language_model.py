"""What every LanguageModel must do.

Subclass ``LanguageModelConformance`` in a test file and override the fixture ``model``. A model that runs a network this
process can also run directly subclasses ``NetworkConformance`` and overrides ``network`` too: its numbers are then compared
with plain passes and with the library's own ``generate``.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting, PromptTooLong, UsageError
from gnothi.models.rendering import Renderer
from gnothi.protocols import LanguageModel
from gnothi.types import Decoding, Generation, Passage, Position, Profile, Prompt, PromptStates, Samples, Site, StateSpec, Task

ANSWER = Task("answer", answer_label="Answer:")
PROMPTS = (
    Prompt(ANSWER, "who is w1 ?"),
    Prompt(ANSWER, "where is the city of w2 and the city of w3 w4 w5 w6 w7 w8 ?"),
    Prompt(ANSWER, "w9 ?", passages=(Passage("p", "w10 is the city of w11 . " * 6, "w12"),)),
    Prompt(Task("reason"), "who is w13 ?", answer_so_far="w14 is the w15 ."),
)
GREEDY = Decoding(max_tokens=8)
WARM = Decoding(max_tokens=8, temperature=1.0, top_k=20, top_p=0.9, seed=11)
SITES = get_args(Site)
# More than the 16 tokens that a block of keys and values holds.
PLAIN_WARM = Decoding(max_tokens=18, temperature=0.8, seed=5)


def texts(samples: Samples) -> list[str]:
    return [generation.text for generation in samples.generations]


def joined(generation: Generation) -> str:
    return "".join(token.text for token in generation.tokens)


class LanguageModelConformance:
    @pytest_asyncio.fixture
    async def model(self) -> AsyncIterator[LanguageModel]:
        raise NotImplementedError("override this fixture: yield a model")
        yield

    async def test_offers_the_protocol(self, model: LanguageModel) -> None:
        assert isinstance(model, LanguageModel)
        assert model.name
        assert isinstance(model.profile, Profile)
        assert all(math.isfinite(threshold) for threshold in model.profile.thresholds.values())

    async def test_a_generation_is_consistent(self, model: LanguageModel) -> None:
        for prompt in PROMPTS:
            generation = await model.generate(prompt, GREEDY)
            assert generation.finish in ("eos", "stop", "length")
            assert 0 < generation.generated_tokens <= GREEDY.max_tokens + 1
            assert generation.prompt_tokens > 0
            if model.capabilities.logprobs and generation.tokens:
                assert joined(generation) == generation.text
                assert all(token.logprob <= 1e-6 for token in generation.tokens)

    async def test_greedy_is_repeatable(self, model: LanguageModel) -> None:
        first = await gather(*(model.generate(prompt, GREEDY) for prompt in PROMPTS))
        second = await gather(*(model.generate(prompt, GREEDY) for prompt in PROMPTS))
        assert [g.text for g in first] == [g.text for g in second]

    async def test_the_length_limit_holds(self, model: LanguageModel) -> None:
        generation = await model.generate(PROMPTS[0], Decoding(max_tokens=1))
        assert len(generation.tokens) <= 1

    async def test_a_stop_string_ends_the_text_and_is_not_in_it(self, model: LanguageModel) -> None:
        for prompt in PROMPTS:
            whole = (await model.generate(prompt, GREEDY)).text
            if len(whole) < 6:
                continue
            stop = whole[3:5]
            stopped = await model.generate(prompt, replace(GREEDY, stop=(stop, "never in any text")))
            assert stopped.text == whole[: whole.index(stop)]
            assert stopped.finish == "stop"
            assert joined(stopped) in ("", stopped.text)

    async def test_sampling_gives_n_rows_and_one_state_each(self, model: LanguageModel) -> None:
        samples = await model.sample(PROMPTS[0], 5, WARM)
        assert len(samples.generations) == 5
        assert samples.states == ()
        if model.capabilities.hidden_states:
            (states,) = (await model.sample(PROMPTS[0], 5, WARM, [StateSpec()])).states
            assert states.dtype == np.float32
            assert states.shape[0] == 5
            assert states.ndim == 2
            assert np.isfinite(states).all()

    async def test_states_of_several_places_are_those_of_single_requests(self, model: LanguageModel) -> None:
        if not model.capabilities.hidden_states:
            pytest.skip("this model gives no hidden states")
        specs = [StateSpec(layer, site, position) for position in get_args(Position) for site in SITES for layer in (0, 1)]
        # A short limit, a stop string and the end of sequence end samples in different ways.
        for decoding in (replace(WARM, max_tokens=3), replace(WARM, stop=(" w1",))):
            plain, *single = await gather(
                model.sample(PROMPTS[1], 6, decoding), *(model.sample(PROMPTS[1], 6, decoding, [spec]) for spec in specs)
            )
            several = await model.sample(PROMPTS[1], 6, decoding, [*specs, specs[0]])
            assert texts(several) == texts(plain)
            assert len(several.states) == len(specs) + 1
            for alone, states in zip([*single, single[0]], several.states, strict=True):
                (expected,) = alone.states
                np.testing.assert_allclose(states, expected, atol=1e-4 * max(1, np.abs(expected).max()))
                assert texts(alone) == texts(plain)

    async def test_states_of_a_prompt_are_those_that_predict_its_first_token(self, model: LanguageModel) -> None:
        places = [StateSpec(layer, site, "predicting") for site in SITES for layer in (0, 1)]
        if not model.capabilities.hidden_states:
            with pytest.raises(UsageError, match="hidden states"):
                await model.states(PROMPTS[0], places)
            return
        # Beside a continuation of the same prompt, beside others, twice at a time, alone.
        sampled = await gather(*(model.sample(prompt, 1, Decoding(max_tokens=1), places) for prompt in PROMPTS))
        company = [model.sample(prompt, 2, WARM, [StateSpec()]) for prompt in PROMPTS[:2]]
        states = (await gather(*company, *(model.states(prompt, [*places, places[0]]) for prompt in PROMPTS * 2)))[2:]
        states += [await model.states(PROMPTS[2], [*places, places[0]])]
        for one, expected, prompt in zip(
            states, [*sampled, *sampled, sampled[2]], [*PROMPTS, *PROMPTS, PROMPTS[2]], strict=True
        ):
            assert isinstance(one, PromptStates)
            assert one.prompt_tokens == expected.generations[0].prompt_tokens, prompt
            assert len(one.states) == len(places) + 1
            for state, (row,) in zip(one.states, [*expected.states, expected.states[0]], strict=True):
                assert state.dtype == np.float32
                assert state.shape == row.shape
                np.testing.assert_allclose(state, row, atol=1e-4 * max(1, np.abs(row).max()))
        assert (await model.states(PROMPTS[0], [])).states == ()

    async def test_a_prompt_has_no_state_behind_its_end(self, model: LanguageModel) -> None:
        if not model.capabilities.hidden_states:
            pytest.skip("this model gives no hidden states")
        with pytest.raises(InvalidSetting, match="got the position 'fed_eos', expected 'predicting'"):
            await model.states(PROMPTS[0], [StateSpec()])

    async def test_the_same_seed_gives_the_same_samples(self, model: LanguageModel) -> None:
        first, second = await gather(model.sample(PROMPTS[1], 6, WARM), model.sample(PROMPTS[1], 6, WARM))
        assert texts(first) == texts(second)

    async def test_samples_are_a_prefix_of_more_samples(self, model: LanguageModel) -> None:
        few, many = await gather(model.sample(PROMPTS[1], 3, WARM), model.sample(PROMPTS[1], 9, WARM))
        assert texts(few) == texts(many)[:3]

    async def test_no_samples_is_an_error(self, model: LanguageModel) -> None:
        with pytest.raises(InvalidSetting, match="got n = 0"):
            await model.sample(PROMPTS[0], 0, WARM)

    async def test_attention_looks_back_at_everything_it_looks_at(self, model: LanguageModel) -> None:
        if not model.capabilities.attentions:
            with pytest.raises(UsageError, match="attentions"):
                await model.attend(PROMPTS[3], "w1 is w2 .")
            return
        attended = await model.attend(PROMPTS[3], "w1 is w2 .")
        count, total = attended.attention.shape
        assert (count, total) == (len(attended.entropies), len(attended.tokens))
        assert 0 < count < total
        assert "".join("".join(attended.tokens[attended.prompt_tokens :]).split()) == "w1isw2."
        assert np.allclose(attended.attention.sum(axis=1), 1.0, atol=1e-2)
        assert (attended.attention >= 0).all()
        assert all((row[attended.prompt_tokens + place + 1 :] == 0).all() for place, row in enumerate(attended.attention))
        assert (attended.entropies >= 0).all()

    async def test_scores_come_in_order(self, model: LanguageModel) -> None:
        if not model.capabilities.scoring:
            pytest.skip("this model does not score")
        continuations = ["Yes", "No", "w1 w2 w3", "", "Yes"]
        scores = await model.score(PROMPTS[0], continuations)
        assert [score.text for score in scores] == continuations
        assert scores[0].logprobs == pytest.approx(scores[4].logprobs, abs=1e-4)
        assert scores[3].logprobs == ()
        assert all(number <= 0 for score in scores for number in score.logprobs)
        assert await model.score(PROMPTS[0], []) == ()

    async def test_calls_run_concurrently(self, model: LanguageModel) -> None:
        calls = [model.sample(prompt, 3, replace(WARM, seed=seed)) for seed in range(4) for prompt in PROMPTS]
        assert [len(samples.generations) for samples in await gather(*calls)] == [3] * len(calls)

    async def test_a_cancelled_call_harms_nobody(self, model: LanguageModel) -> None:
        expected = texts(await model.sample(PROMPTS[0], 4, WARM))
        doomed = asyncio.create_task(model.sample(PROMPTS[1], 4, replace(WARM, max_tokens=100)))
        fine = asyncio.create_task(model.sample(PROMPTS[0], 4, WARM))
        await asyncio.sleep(0)
        doomed.cancel()
        assert texts(await fine) == expected
        # A model that answers at once may be done before the cancellation arrives.
        (outcome,) = await asyncio.gather(doomed, return_exceptions=True)
        assert isinstance(outcome, asyncio.CancelledError | Samples)
        assert texts(await model.sample(PROMPTS[0], 4, WARM)) == expected

    async def test_closing_twice_is_fine(self, model: LanguageModel) -> None:
        await model.generate(PROMPTS[0], GREEDY)
        await model.aclose()
        await model.aclose()


@dataclass(frozen=True)
class Network:
    """The network behind a model: ``transformers`` model and tokenizer, how prompts are rendered, what its passes agree to.

    ``layer(i)`` and ``ffn(i)`` are the modules whose output is the residual stream after layer i and what its feed-forward
    block adds to it.
    """

    model: Any
    tokenizer: Any
    renderer: Renderer
    context: int
    tolerance: float = 1e-5

    def prompt_ids(self, prompt: Prompt) -> list[int]:
        return list(self.tokenizer(self.renderer.render(prompt), add_special_tokens=self.renderer.special_tokens)["input_ids"])

    def layer(self, index: int) -> Any:
        return next(stack for stack in self._stacks() if len(stack) == self.model.config.num_hidden_layers)[index]

    def ffn(self, index: int) -> Any:
        layer = self.layer(index)
        return getattr(layer, "post_feedforward_layernorm", layer.mlp)

    def _stacks(self) -> list[Any]:
        import torch

        return [module for module in self.model.modules() if isinstance(module, torch.nn.ModuleList)]

    def refeed(self, ids: list[int], layer: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """One plain pass without cache: logits, what the layer's feed-forward block adds, and its output; all per position."""
        logits, ((ffn, residual),) = self.refeed_layers(ids, [layer])
        return logits, ffn, residual

    def refeed_layers(
        self, ids: list[int], layers: Sequence[int]
    ) -> tuple[NDArray[np.float64], list[tuple[NDArray[np.float64], NDArray[np.float64]]]]:
        """As ``refeed``, of several layers in one pass."""
        import torch

        outputs: dict[tuple[Site, int], Any] = {}

        def hook(site: Site, layer: int) -> Any:
            return lambda _m, _i, output: outputs.update({(site, layer): output[0] if isinstance(output, tuple) else output})

        hooks = [self.ffn(layer).register_forward_hook(hook("ffn", layer)) for layer in layers]
        hooks += [self.layer(layer).register_forward_hook(hook("residual", layer)) for layer in layers]
        with torch.inference_mode():
            out = self.model(input_ids=torch.tensor([ids]), use_cache=False, output_hidden_states=True)
        for one in hooks:
            one.remove()
        for layer in layers:
            if layer + 1 < self.model.config.num_hidden_layers:
                assert torch.equal(outputs["residual", layer], out.hidden_states[layer + 1])
        states = {place: value[0].double().numpy() for place, value in outputs.items()}
        return out.logits[0].double().numpy(), [(states["ffn", layer], states["residual", layer]) for layer in layers]


def log_softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    result: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


class NetworkConformance(LanguageModelConformance):
    @pytest.fixture
    def network(self) -> Network:
        raise NotImplementedError("override this fixture: return the network behind the model")

    def tokens(self, network: Network, generation: Generation) -> list[int]:
        """The generated tokens, the ending end-of-sequence token included."""
        ids = [token.id for token in generation.tokens]
        assert None not in ids
        known = [number for number in ids if number is not None]
        return [*known, network.tokenizer.eos_token_id] if generation.finish == "eos" else known

    def check_numbers(self, model: LanguageModel, network: Network, prompt: Prompt, generation: Generation) -> None:
        prompt_ids = network.prompt_ids(prompt)
        ids = self.tokens(network, generation)
        logits, _, _ = network.refeed(prompt_ids + ids, 0)
        expected = log_softmax(logits)[np.arange(len(prompt_ids) - 1, len(prompt_ids) - 1 + len(ids)), ids]
        sums = np.log(np.exp(logits).sum(axis=-1))[len(prompt_ids) - 1 :]
        for token, logprob, logsumexp in zip(generation.tokens, expected, sums, strict=False):
            assert token.logprob == pytest.approx(logprob, abs=network.tolerance)
            if model.capabilities.energy:
                assert token.logsumexp == pytest.approx(logsumexp, abs=network.tolerance)
            else:
                assert token.logsumexp is None
        assert generation.prompt_tokens == len(prompt_ids)
        assert generation.generated_tokens == len(ids)

    async def test_greedy_equals_the_librarys_own(self, model: LanguageModel, network: Network) -> None:
        import torch

        generations = await gather(*(model.generate(prompt, GREEDY) for prompt in PROMPTS))
        for prompt, generation in zip(PROMPTS, generations, strict=True):
            ids = torch.tensor([network.prompt_ids(prompt)])
            plain = network.model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=GREEDY.max_tokens, do_sample=False
            )
            assert self.tokens(network, generation) == plain[0, ids.shape[1] :].tolist()

    async def test_logprobs_and_energies_equal_a_refeed_at_any_batch_composition(
        self, model: LanguageModel, network: Network
    ) -> None:
        together = await gather(
            *(
                model.sample(prompt, n, decoding)
                for prompt in PROMPTS
                for n, decoding in [(1, GREEDY), (3, WARM), (2, PLAIN_WARM)]
            )
        )
        for number, samples in enumerate(together):
            for generation in samples.generations:
                self.check_numbers(model, network, PROMPTS[number // 3], generation)
        alone = await model.sample(PROMPTS[2], 1, WARM)
        for generation in alone.generations:
            self.check_numbers(model, network, PROMPTS[2], generation)

    @pytest.mark.parametrize("position", get_args(Position))
    async def test_states_equal_a_refeed(self, model: LanguageModel, network: Network, position: Position) -> None:
        count = network.model.config.num_hidden_layers
        layers = (count // 2 - 1, count - 1)
        specs = [StateSpec(layer, site, position) for layer in (None, count - 1) for site in SITES]
        # A length limit of 4 makes some samples end at it, others at the end-of-sequence token.
        runs = [model.sample(prompt, 3, replace(WARM, max_tokens=4), specs) for prompt in PROMPTS]
        others = [
            model.sample(PROMPTS[0], 3, PLAIN_WARM),
            model.sample(PROMPTS[1], 2, PLAIN_WARM, [StateSpec(1)]),
        ]
        results = (await gather(*runs, *others))[: len(PROMPTS)]
        for prompt, samples in zip(PROMPTS, results, strict=True):
            for generation, *states in zip(samples.generations, *samples.states, strict=True):
                ids = self.tokens(network, generation)
                fed = [*ids[:-1], network.tokenizer.eos_token_id] if position == "fed_eos" else ids
                sequence = network.prompt_ids(prompt) + fed
                place = len(sequence) - (2 if position == "predicting" else 1)
                _, plain = network.refeed_layers(sequence, layers)
                for state, expected in zip(states, self.in_order(plain), strict=True):
                    self.check_state(network, state, expected[place])

    async def test_states_of_prompts_equal_a_plain_pass(self, model: LanguageModel, network: Network) -> None:
        layers = range(network.model.config.num_hidden_layers)
        places = [StateSpec(layer, site, "predicting") for layer in layers for site in SITES]
        together, shallowest = [
            await gather(*(model.states(prompt, asked_places) for prompt in PROMPTS)) for asked_places in (places, places[:1])
        ]
        for prompt, states, alone in zip(PROMPTS, together, shallowest, strict=True):
            assert states.prompt_tokens == alone.prompt_tokens == len(network.prompt_ids(prompt))
            _, plain = network.refeed_layers(network.prompt_ids(prompt), layers)
            for state, expected in zip(states.states, self.in_order(plain), strict=True):
                self.check_state(network, state, expected[-1])
            (state,) = alone.states
            self.check_state(network, state, next(self.in_order(plain))[-1])

    def in_order(self, plain: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> Iterator[NDArray[np.float64]]:
        """What ``Network.refeed_layers`` gives, in the order of ``SITES`` in each layer."""
        for ffn, residual in plain:
            yield from (ffn if site == "ffn" else residual for site in SITES)

    def check_state(self, network: Network, state: NDArray[np.float32], expected: NDArray[np.float64]) -> None:
        np.testing.assert_allclose(state, expected, atol=network.tolerance * max(1, np.abs(expected).max()))

    async def test_states_after_a_stop_string(self, model: LanguageModel, network: Network) -> None:
        """The token that completed the stop string is the ending one, though it is not among the generation's tokens."""
        samples = await model.sample(PROMPTS[1], 8, WARM, [StateSpec(None, "residual", "predicting")])
        # The third token must have text, which special tokens lack.
        whole = next(one for one in samples.generations if len(one.tokens) >= 4 and one.tokens[2].text.strip())
        row = samples.generations.index(whole)
        stop = whole.tokens[2].text.strip()
        spec = StateSpec(1, "ffn", "fed_eos")
        stopped = await model.sample(PROMPTS[1], 8, replace(WARM, stop=(stop,)), [spec])
        assert stopped.generations[row].finish == "stop"
        ids = [token.id for token in whole.tokens]
        end = next(at for at, token in enumerate(whole.tokens) if stop in token.text)
        sequence = [*network.prompt_ids(PROMPTS[1]), *ids[:end], network.tokenizer.eos_token_id]
        assert stopped.generations[row].generated_tokens == end + 1
        _, ffn, _ = network.refeed(sequence, 1)
        self.check_state(network, stopped.states[0][row], ffn[-1])

    async def test_samples_do_not_depend_on_company_or_order(self, model: LanguageModel) -> None:
        alone = [texts(await model.sample(prompt, 6, WARM)) for prompt in PROMPTS]
        together = await gather(*(model.sample(prompt, 6, WARM) for prompt in PROMPTS))
        assert [texts(samples) for samples in together] == alone
        crowd = [model.sample(prompt, 7, replace(PLAIN_WARM, seed=seed)) for seed in range(2) for prompt in PROMPTS]
        late = await gather(*crowd, *(model.sample(prompt, 6, WARM, [StateSpec()]) for prompt in reversed(PROMPTS)))
        assert [texts(samples) for samples in late[-len(PROMPTS) :]] == alone[::-1]

    async def test_a_part_of_a_draw_is_that_part(self, model: LanguageModel) -> None:
        """Drawing stops early by asking for one part after the other."""
        spec = [StateSpec()] if model.capabilities.hidden_states else []
        whole = await model.sample(PROMPTS[1], 9, WARM, spec)
        parts = [await model.sample(PROMPTS[1], n, replace(WARM, first=first), spec) for first, n in ((0, 2), (2, 3), (5, 4))]
        assert [text for part in parts for text in texts(part)] == texts(whole)
        for place in range(len(spec)):
            together = np.concatenate([part.states[place] for part in parts])
            np.testing.assert_allclose(together, whole.states[place], atol=2e-3)

    async def test_scores_equal_a_full_forward(self, model: LanguageModel, network: Network) -> None:
        continuations = ["Yes", "No", "w6 .", "w7 is the city of w8 ."]
        results = await gather(*(model.score(prompt, continuations) for prompt in PROMPTS))
        for prompt, scores in zip(PROMPTS, results, strict=True):
            prompt_ids = network.prompt_ids(prompt)
            for score in scores:
                ids = network.tokenizer(score.text, add_special_tokens=False)["input_ids"]
                logits, _, _ = network.refeed(prompt_ids + ids, 0)
                expected = log_softmax(logits)[np.arange(len(prompt_ids) - 1, len(prompt_ids) - 1 + len(ids)), ids]
                assert score.logprobs == pytest.approx(expected.tolist(), abs=network.tolerance)

    async def test_a_prompt_beyond_the_context_is_refused_alone(self, model: LanguageModel, network: Network) -> None:
        expected = (await model.generate(PROMPTS[0], GREEDY)).text
        long = replace(PROMPTS[0], question="w1 " * (network.context - 5))
        results = await asyncio.gather(
            model.generate(long, GREEDY),
            model.generate(PROMPTS[0], GREEDY),
            model.score(long, ["Yes " * 10]),
            model.sample(PROMPTS[1], 2, WARM),
            model.states(replace(long, question="w1 " * (network.context + 5)), [StateSpec(0, "residual", "predicting")]),
            return_exceptions=True,
        )
        assert isinstance(results[0], PromptTooLong)
        assert str(network.context) in str(results[0])
        assert isinstance(results[1], Generation)
        assert results[1].text == expected
        assert isinstance(results[2], PromptTooLong)
        assert isinstance(results[3], Samples)
        if model.capabilities.hidden_states:
            assert isinstance(results[4], PromptTooLong)

    async def test_a_bad_state_spec_is_refused_alone(self, model: LanguageModel) -> None:
        results = await asyncio.gather(
            model.sample(PROMPTS[0], 2, WARM, [StateSpec(99)]),
            model.states(PROMPTS[0], [StateSpec(99, "residual", "predicting")]),
            model.generate(PROMPTS[0], GREEDY),
            return_exceptions=True,
        )
        assert isinstance(results[0], InvalidSetting)
        assert isinstance(results[1], InvalidSetting)
        assert isinstance(results[2], Generation)
