"""The published scoring rules, written down step by step and independently of the code under test.

SQuAD: lower the text, drop the characters of ``string.punctuation``, replace the words a/an/the by a space, squeeze whitespace.
HotpotQA's F1: zero when one of the two is yes/no/noanswer and they differ; else the harmonic mean of precision and recall.
"""

from __future__ import annotations

import re
import string


def normalize_answer(text: str) -> str:
    lowered = text.lower()
    kept = "".join(character for character in lowered if character not in set(string.punctuation))
    without_articles = re.sub(r"\b(a|an|the)\b", " ", kept)
    return " ".join(without_articles.split())


def exact_match_score(prediction: str, ground_truth: str) -> float:
    return float(normalize_answer(prediction) == normalize_answer(ground_truth))


def hotpot_f1_score(prediction: str, ground_truth: str) -> float:
    predicted, truth = normalize_answer(prediction), normalize_answer(ground_truth)
    if predicted in ["yes", "no", "noanswer"] and predicted != truth:
        return 0.0
    if truth in ["yes", "no", "noanswer"] and predicted != truth:
        return 0.0
    predicted_words, true_words = predicted.split(), truth.split()
    left, same = list(true_words), 0
    for word in predicted_words:
        if word in left:
            left.remove(word)
            same += 1
    if same == 0:
        return 0.0
    precision, recall = same / len(predicted_words), same / len(true_words)
    return 2 * precision * recall / (precision + recall)
