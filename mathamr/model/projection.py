"""Projection head: from the encoder's hidden vectors to the space in which documents are compared.

>>> import torch
>>> ProjectionHead(64, 32)(torch.zeros(5, 64)).shape
torch.Size([5, 32])
"""

from __future__ import annotations

from torch import Tensor, nn


class ProjectionHead(nn.Module):
    r"""Two layers with normalisation after each, thesis Eq. 3.3.

    .. math:: z = \mathrm{LayerNorm}(W_2 \, \mathrm{GELU}(\mathrm{LayerNorm}(W_1 h + b_1)) + b_2)

    with :math:`W_1` of shape (hidden_dim, hidden_dim), :math:`W_2` of shape (projection_dim, hidden_dim), and the exact
    GELU of Eq. 3.2.

    Shapes:
        (V, hidden_dim) -> (V, projection_dim)
    """

    def __init__(self, hidden_dim: int, projection_dim: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(hidden_dim, hidden_dim),
            nn.LayerNorm(hidden_dim),
            nn.GELU(),
            nn.Linear(hidden_dim, projection_dim),
            nn.LayerNorm(projection_dim),
        )

    def forward(self, hidden: Tensor) -> Tensor:
        return self.layers(hidden)
