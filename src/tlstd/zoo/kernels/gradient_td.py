"""Gradient TD(λ) with dense features: the equations of ``classic/kernels/td.py`` as they stand, O(d m) per step."""

from __future__ import annotations

import numpy as np

from tlstd.core.jit import kernel

_TINY = 1e-300  # below this the next product would be subnormal: slow, and worth nothing


@kernel
def learn(X, picked, X_next, next_picked, steps, rewards, Wt, z, counts, lambda_, kappa, second, values):
    """Learn from picked rows of dense matrices by TDC, or GTD2 if ``second``, in place; ``Wt`` (2m, d) is W, then H."""
    m = rewards.shape[1]
    for t in range(picked.size):
        x, x_next = X[picked[t]], X_next[next_picked[t]]
        alpha, discount, decay, rho, beta = steps[0, t], steps[1, t], steps[2, t], steps[3, t], steps[4, t]
        g, kept = rho * decay, 1.0 - beta * kappa
        for j in range(x.size):  # z ← ρ (γ_t λ z + x)
            new = rho * x[j] if g == 0.0 else g * z[j] + rho * x[j]
            z[j] = 0.0 if abs(new) < _TINY else new
        for c in range(m):
            w, h = Wt[c], Wt[m + c]
            delta, hx, along_next = rewards[t, c] - np.dot(w, x), np.dot(h, x), 0.0
            if discount != 0.0:
                delta += discount * np.dot(w, x_next)
                if lambda_ != 1.0:
                    along_next = alpha * discount * (1.0 - lambda_) * np.dot(z, h)
            along_z, along_x = (0.0, alpha * hx) if second else (alpha * delta, 0.0)
            h_along_z, h_along_x = beta * delta, beta * hx
            for j in range(x.size):
                w[j] += along_z * z[j] + along_x * x[j] - along_next * x_next[j]
                h[j] = kept * h[j] + h_along_z * z[j] - h_along_x * x[j]
            if values.size:
                values[t, c] = np.dot(w, x_next)
    counts[2] += picked.size
