"""Answers of the service, which it builds and a client reads; and choices in requests."""

from prescore.models.base import Answer, Brief, FieldError, Linked, Problem, RunProblem
from prescore.models.captions import (
    Caption,
    CaptionInspection,
    CocoResults,
    Token,
    TokenizedCaption,
    Tokens,
    TopWord,
)
from prescore.models.checkpoints import Cached, Checkpoint, Columns, Plugin
from prescore.models.comparisons import (
    CaptionDrops,
    Compared,
    Comparison,
    ImageCompared,
    Moved,
    WordExchange,
    WordExchanges,
)
from prescore.models.datasets import Dataset, Encoder, Features, References, Split
from prescore.models.evaluations import (
    Estimate,
    Evaluation,
    Fall,
    Forecast,
    Gate,
    GateScore,
    Label,
    LabelValue,
    NoForecast,
)
from prescore.models.identifiers import Digest, Id
from prescore.models.keys import Change, Key, Limit, Me
from prescore.models.leaderboard import BoardHead, Scored, Standing
from prescore.models.learned import AccordCard, Learned, ModelCard
from prescore.models.metrics import Metric, MetricHealth, PregenScores, Score
from prescore.models.overviews import AttentionItem, CaptionerTraining
from prescore.models.probes import ProbeRow, Probes
from prescore.models.runs import ENDED, DatasetPinned, Event, Oddity, Progress, Run, RunTask
from prescore.models.signals import EarlyDecision, MetricSignal, SignalCard
from prescore.models.studies import (
    Correlated,
    Correlation,
    Correlations,
    LeftOut,
    Remaining,
    Study,
    StudyRun,
    StudyUnderWay,
)
from prescore.models.sweeps import SweepRanking, SweepRun
from prescore.models.webhooks import Webhook, WebhookError, WebhookSecret
from prescore.models.workers_and_queues import Queue, TaskHeld, Worker

Pinned = DatasetPinned

__all__ = [
    "ENDED",
    "AccordCard",
    "Answer",
    "AttentionItem",
    "BoardHead",
    "Brief",
    "Cached",
    "Caption",
    "CaptionDrops",
    "CaptionInspection",
    "CaptionerTraining",
    "Change",
    "Checkpoint",
    "CocoResults",
    "Columns",
    "Compared",
    "Comparison",
    "Correlated",
    "Correlation",
    "Correlations",
    "Dataset",
    "DatasetPinned",
    "Digest",
    "EarlyDecision",
    "Encoder",
    "Estimate",
    "Evaluation",
    "Event",
    "Fall",
    "Features",
    "FieldError",
    "Forecast",
    "Gate",
    "GateScore",
    "Id",
    "ImageCompared",
    "Key",
    "Label",
    "LabelValue",
    "Learned",
    "LeftOut",
    "Limit",
    "Linked",
    "Me",
    "Metric",
    "MetricHealth",
    "MetricSignal",
    "ModelCard",
    "Moved",
    "NoForecast",
    "Oddity",
    "Pinned",
    "Plugin",
    "PregenScores",
    "ProbeRow",
    "Probes",
    "Problem",
    "Progress",
    "Queue",
    "References",
    "Remaining",
    "Run",
    "RunProblem",
    "RunTask",
    "Score",
    "Scored",
    "SignalCard",
    "Split",
    "Standing",
    "Study",
    "StudyRun",
    "StudyUnderWay",
    "SweepRanking",
    "SweepRun",
    "TaskHeld",
    "Token",
    "TokenizedCaption",
    "Tokens",
    "TopWord",
    "Webhook",
    "WebhookError",
    "WebhookSecret",
    "WordExchange",
    "WordExchanges",
    "Worker",
]
