"""KEQA: question answering with knowledge evaluation (Lin et al., AAAI 2025).

The question is split into quizzes; a quiz that the model does not answer consistently is looked up (section 3.3), of what is
found only passages judged useful are read (3.4), and the quizzes' answers are summarised. Text is all it needs of a model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from gnothi.errors import InvalidSetting
from gnothi.fields import resource, setting
from gnothi.filtering.self_knowledge import fall_back
from gnothi.filtering.sentences import rejoined, sentences_of
from gnothi.filtering.utility import DemonstrationSource, References, Useful
from gnothi.methods.steps.gating import GateSpec
from gnothi.methods.steps.parsing import as_choice, yes_or_no
from gnothi.methods.steps.prompts import ANSWER, ANSWER_YES_NO, EQUIVALENT, USEFUL, ask, require_text
from gnothi.methods.steps.quizzes import UNKNOWN, Solved, SplitSettings, ask_in_order, each_once
from gnothi.methods.steps.requirements import follows_instructions
from gnothi.methods.steps.searching import search
from gnothi.methods.steps.settings import SHORT_STOPS
from gnothi.methods.steps.summary import evidence_of, summarise, uncertainty_of
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.assessment import Assessment, Schedule
from gnothi.signals.judge import says_yes
from gnothi.signals.replies import says_nothing
from gnothi.types import Answer, Decoding, Passage, Prompt, Question, Task
from gnothi.yes_or_no import asks_yes_or_no


@dataclass(frozen=True, slots=True)
class KEQA(SplitSettings):
    """Splits the question into quizzes, looks up those answered inconsistently, and reads what a judge finds useful."""

    model: LanguageModel
    retriever: Retriever
    judge: LanguageModel | None = resource("Model that says whether two answers mean the same.")
    utility_judge: LanguageModel | None = resource("Model that says whether a passage is useful.")
    reader: LanguageModel | None = resource("Model that answers quizzes from passages.")
    reference: DemonstrationSource | None = resource("Utility reference: where the utility judge's demonstrations come from.")
    max_quizzes: int = setting(20, "A longer list is not used: the question is the only quiz then.", at_least=1)
    assess: bool = setting(True, "Ask the model first; false (ablation, without QKE): every quiz is looked up.")
    tries: int = setting(5, "N_c: answers to each quiz.", at_least=1)
    alpha: float = setting(0.8, "α: known from this share of consistent answers.", at_least=0.0, at_most=1.0)
    schedule: Schedule = setting(
        "waves",
        "Tries together, with early stops between waves; all in one; one after the other until it is settled; or each in_turn.",
    )
    temperature: float = setting(1.0, "Temperature of the tries.", at_least=0.01)
    top_p: float | None = setting(
        None,
        "Tries draw from the likeliest tokens that make up this probability (none: 0.9 for a model that runs here and follows "
        "instructions, whose rarest tokens make gibberish of tries; else 1).",
        at_least=0.0,
        at_most=1.0,
    )
    k: int = setting(10, "Passages to retrieve for an unknown quiz.", at_least=1)
    pick: bool = setting(True, "Read only useful passages; false (ablation, without UKP): all of them.")
    fall_back: bool | None = setting(
        None,
        "No passage is judged useful: read the first one; false: the commonest try counts (none: read it where the judge "
        "neither learnt to judge nor has demonstrations of a utility reference).",
    )
    references: References = setting(
        "nearest",
        "The utility judge's demonstrations, where there is a utility reference (else fixed ones): the nearest ones, the best "
        "last or best_first (the authors' code), random ones, or none.",
    )
    shots: int = setting(8, "Demonstrations from the utility reference.", at_least=1)
    shots_per_label: int = setting(2, "Of these at least as many useful ones, and useless ones.", at_least=0)
    key_sentences: bool = setting(False, "Of useful passages, read only the sentences that the judge calls useful (variant).")
    demonstrations: bool = setting(
        True,
        "Quizzes, readers and judges are shown fixed worked examples; false: instructions alone, as published (lists of "
        "quizzes and the summary keep theirs).",
    )
    sentences: bool = setting(
        True, "For the summary, let the model state each quiz's answer as a sentence; false: quiz and answer side by side."
    )
    yes_no: bool | None = setting(None, "The question asks for yes or no (none: by its wording).")

    name: ClassVar[str] = "keqa"
    usual_tokens: ClassVar[int] = 15_000
    gating: ClassVar[GateSpec] = GateSpec(
        None,
        "alpha",
        tries="tries",
        asks="assess",
        schedule="schedule",
        depends_on=("tries", "temperature", "top_p", "decompose", "judge"),
    )

    def check_settings(self) -> None:
        if self.references == "random" and self.reference is None:
            raise InvalidSetting(
                "setting 'references': got random, but there is no utility reference to draw from. "
                "Give one with <--set reference=PATH>, or leave references out."
            )

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        yes_no = self.yes_no
        if yes_no is None:
            yes_no = not question.choices and asks_yes_or_no(question.text)
        quizzes = await self.parts_of(question, self.model, self.max_quizzes)
        # The answer to a single quiz is the answer, unless the question wants it in another form: yes or no, or a choice.
        # Quizzes are asked without the choices, among which a model that knows nothing may well be consistent.
        only = quizzes[0].text if len(quizzes) == 1 and not question.choices else ""
        alone = only == question.text or (bool(only) and yes_no == asks_yes_or_no(only))

        async def solve(quiz: str) -> Solved:
            return await self._solve(Question(question.id, quiz), yes_no if alone else asks_yes_or_no(quiz))

        solved = each_once(await ask_in_order(quizzes, solve))
        answer, rationale = solved[0].answer, ""
        if not alone:
            reader = self.reader or self.model
            whole_answer = await summarise(
                self.model, reader, question, solved, yes_no, self.max_tokens, self.sentences, self.extraction
            )
            answer = UNKNOWN if says_nothing(whole_answer.answer) else whole_answer.answer
            rationale = whole_answer.rationale
        result = Answer(as_choice(answer, question.choices), rationale, evidence_of(solved), uncertainty_of(solved))
        return await self.reread(self.reader or self.model, question, result)

    @property
    def _nucleus(self) -> float:
        if self.top_p is not None:
            return self.top_p
        return 0.9 if self.model.capabilities.hidden_states and follows_instructions(self.model) else 1.0

    # --- one quiz ------------------------------------------------------------------------------------------------------

    async def _solve(self, quiz: Question, yes_no: bool) -> Solved:
        """From memory where the tries agree (section 3.3), else from the passages picked (section 3.4)."""
        task = self._task(ANSWER_YES_NO if yes_no else ANSWER)

        def extract(reply: str) -> str:
            answer = self.extraction.short(reply, "" if yes_no else quiz.text)
            return yes_or_no(answer) if yes_no else answer

        guess, disagreement = "", None
        if self.assess:
            assessment = Assessment(self._same, extract, self.tries, self.alpha, self.schedule)
            decoding = Decoding(self.max_tokens, self.temperature, top_p=self._nucleus, stop=SHORT_STOPS)
            consensus = await assessment(self.model, ask(task, quiz), decoding)
            guess, disagreement = consensus.answer, consensus.disagreement
            if consensus.known:
                return Solved(quiz.text, guess, "memory", (), disagreement)
        passages = await self._look_up(quiz)
        if passages:
            reply = await (self.reader or self.model).generate(ask(task, quiz, passages), self.decoding(SHORT_STOPS))
            if not says_nothing(answer := extract(reply.text)):
                return Solved(quiz.text, answer, "passages", passages, disagreement)
        if guess:
            return Solved(quiz.text, guess, "guess", (), disagreement)
        return Solved(quiz.text, UNKNOWN, "nothing", (), disagreement)

    async def _look_up(self, quiz: Question) -> tuple[Passage, ...]:
        passages = await search(self.retriever, quiz.text, self.k)
        if not self.pick:
            return passages
        judge = self.utility_judge or self.model
        useful = Useful(judge, self._task(USEFUL), self.reference, self.references, self.shots, self.shots_per_label)
        selected = await useful(quiz.text, passages)
        if selected and self.key_sentences:
            sentences = sentences_of(selected)
            ids = {one.id for one in await useful(quiz.text, [sentence.passage for sentence in sentences])}
            return rejoined(one for one in sentences if one.passage.id in ids) or selected
        untrained = self.reference is None and follows_instructions(judge)
        if selected or not passages or not (untrained if self.fall_back is None else self.fall_back):
            return selected
        return fall_back(passages[:1], "useful", quiz)

    async def _same(self, quiz: str, first: str, second: str) -> bool:
        return await says_yes(self.judge or self.model, Prompt(self._task(EQUIVALENT), quiz, choices=(first, second)))

    def _task(self, task: Task) -> Task:
        return task if self.demonstrations else replace(task, demonstrations=())
