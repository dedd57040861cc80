import pytest
from helpers.training import setup

from utils.checkpoint import save_checkpoint


@pytest.fixture(scope="session")
def good(tmp_path_factory):
    """A checkpoint in the middle of a training with a running mean."""
    path = tmp_path_factory.mktemp("good") / "model.safetensors"
    trainer, vocabs = setup(averaging=0.9)
    trainer.fit(lambda trainer: True, progress=False)
    save_checkpoint(path, trainer.model, *vocabs, trainer=trainer)
    return path
