"""Define faults in learning: in algorithms, codecs, privacy, partitions, and warm starts."""

from tests.faults import Fault
from tests.faults.injecting import edited

UNIT = "tests/unit/learning/"
ALGORITHMS = "edgefl.learning.algorithms"
DERIVED = f"{UNIT}test_algorithms.py::test_rounds_follow_the_derivation"

FAULTS = (
    Fault(
        "learning.sgd_momentum",
        "momentum is carried over from round to round",
        "a device begins each round with a new optimizer",
        f"{UNIT}local/test_local_training.py::test_nothing_is_left_over_from_the_last_round",
        "exact",
        edited("edgefl.learning.local.chunk_training:_state_of", ".zero_()", ""),
    ),
    Fault(
        "learning.server_momentum",
        "FedAvgM's momentum counts the new change with weight 1 - beta",
        "Hsu, Qi and Brown, 2019",
        DERIVED,
        "0.00003 of a parameter, rounding of float32",
        edited(
            f"{ALGORITHMS}.fedavgm:FedAvgM.aggregate",
            "+ updates.mean_change()",
            "+ (1 - self.beta) * updates.mean_change()",
        ),
    ),
    Fault(
        "learning.fednova_weights",
        "FedNova does not normalise by each device's accumulated steps",
        "Wang et al., NeurIPS 2020",
        "tests/theory/test_learning_drift.py::test_fednova_follows_the_gradient_whatever_the_steps",
        "0.001 of the cosine; another method deviates by more than 0.01",
        edited(
            f"{ALGORITHMS}.fednova:FedNova.aggregate",
            "effective * updates.shares / updates.travel",
            "updates.shares",
        ),
    ),
    Fault(
        "learning.scaffold_control",
        "a device's control variate is divided by half its steps",
        "Karimireddy et al., ICML 2020, option II",
        "tests/theory/test_learning_drift.py::test_scaffold_settles_at_the_optimum_and_fedavg_does_not",
        "0.00002 from the optimum; another method deviates by more than 0.001",
        edited(
            f"{ALGORITHMS}.scaffold:Scaffold.keep",
            "trained.travel * trained.lr",
            "0.5 * trained.travel * trained.lr",
        ),
    ),
    Fault(
        "learning.scaffold_coverage",
        "the server's control variate moves as if all devices took part",
        "Karimireddy et al.: |S| / N",
        f"{UNIT}updates/test_members.py::test_the_servers_vector_stays_the_mean_of_its_members",
        "0.000003 of a parameter, rounding of float32",
        edited(f"{ALGORITHMS}.scaffold:Scaffold.aggregate", "updates.coverage * (mean", "1.0 * (mean"),
    ),
    Fault(
        "learning.feddyn_sign",
        "FedDyn's server adds its gradient term instead of subtracting it",
        "Acar et al., ICLR 2021",
        DERIVED,
        "0.00003 of a parameter, rounding of float32",
        edited(
            f"{ALGORITHMS}.feddyn:FedDyn.aggregate", "updates.mean() - gradient", "updates.mean() + gradient"
        ),
    ),
    Fault(
        "learning.adam_bias",
        "tau is left out of the adaptive servers' denominator",
        "Reddi et al., ICLR 2021",
        f"{UNIT}test_adaptive_servers.py::test_fifty_steps_follow_the_definition",
        "1e-6 of the largest parameter",
        edited(
            f"{ALGORITHMS}._adaptive_server:AdaptiveServer.denominator",
            "square.sqrt() + self.tau",
            "square.sqrt()",
        ),
    ),
    Fault(
        "learning.adam_correction",
        "Adam on devices omits the bias correction of the mean of squares",
        "Kingma and Ba, ICLR 2015",
        f"{UNIT}test_optimisers.py::test_stacked_steps_equal_pytorchs_on_each_device",
        "1e-12 of a parameter",
        edited(
            "edgefl.learning.optimisers.adam:Adam._move",
            "((1 - beta2**step.number) / (1 - beta2)) ** 0.5",
            "(1.0 / (1 - beta2)) ** 0.5",
        ),
    ),
    Fault(
        "learning.nesterov",
        "Nesterov's momentum is plain momentum",
        "torch.optim.SGD",
        f"{UNIT}test_optimisers.py::test_stacked_steps_equal_pytorchs_on_each_device",
        "1e-12 of a parameter",
        edited(
            "edgefl.learning.optimisers.sgd:Sgd.step",
            "if self.nesterov else velocity",
            "if False else velocity",
        ),
    ),
    Fault(
        "learning.weights_not_normalised",
        "a cloud's mean gives all cells equal weight",
        "federated averaging by data size",
        f"{UNIT}updates/test_cloud_models.py::test_cells_weigh_by_the_data_behind_their_models",
        "0.00001 of a parameter",
        edited(
            "edgefl.learning.federation.cloud_stage:CloudModels.mean",
            "mean + self._models[cell] * (self._samples[cell] / whole)",
            "mean + self._models[cell] * (self._samples[first] / whole)",
        ),
    ),
    Fault(
        "learning.tiers_flip",
        "a tier's weight follows from its own number of models",
        "FedAT, Chai et al., 2021: by the number of the opposite tier",
        f"{UNIT}updates/test_updates.py::test_the_model_is_the_mean_of_the_tiers_models_weighed_by_the_opposite_tiers_count",
        "1e-6 of a parameter",
        edited(
            "edgefl.learning.updates.tiers:TierModels.after", "made[list(there)].flip(0)", "made[list(there)]"
        ),
    ),
    Fault(
        "learning.softmax_sign",
        "similar sessions have the smallest weights",
        "journal paper: softmax of -R times distance",
        f"{UNIT}test_warm_starts.py::test_openings_by_hand",
        "1e-6 of a weight",
        edited(
            "edgefl.learning.warm_starts.similarity:Similarity.opening",
            "torch.softmax(-self",
            "torch.softmax(self",
        ),
    ),
    Fault(
        "learning.ema_order",
        "the pilot's exponential weights favour the oldest sessions",
        "journal paper, eq. (30)",
        f"{UNIT}test_warm_starts.py::test_the_pilot_by_exponential_weights",
        "1e-6 of a parameter",
        edited(
            "edgefl.learning.warm_starts.similarity:Similarity.pilot",
            "self.beta ** (last - s)",
            "self.beta ** s",
        ),
    ),
    Fault(
        "learning.distillation_order",
        "distillation is the divergence of the old model from the new one",
        "journal paper: KL(q, p) on known classes",
        f"{UNIT}test_warm_starts.py::test_distillation_is_kl_on_the_known_classes",
        "1e-6 of the loss",
        edited(
            "edgefl.learning.warm_starts.continuous:_Distillation.loss",
            "(log_q.exp() * (log_q - log_p))",
            "(log_p.exp() * (log_p - log_q))",
        ),
    ),
    Fault(
        "learning.dirichlet_alpha",
        "Dirichlet's alpha is doubled",
        "marginals of a Dirichlet law",
        f"{UNIT}test_partitions.py::test_a_share_is_beta_distributed",
        "a Kolmogorov-Smirnov test that errs with probability 0.01 %",
        edited(
            "edgefl.learning.partitions.dirichlet:Dirichlet._owners",
            "np.full(devices, self.alpha)",
            "np.full(devices, 2 * self.alpha)",
        ),
    ),
    Fault(
        "learning.dirichlet_rounding",
        "shares are rounded down, at the expense of the first devices",
        "rounding favours no device",
        f"{UNIT}test_partitions.py::test_rounding_favours_no_device",
        "4 standard errors of a device's mean count",
        edited("edgefl.learning.partitions.dirichlet:Dirichlet._owners", "upto + rng.random()", "upto"),
    ),
    Fault(
        "learning.epsilon_linear",
        "epsilon's deviations add up linearly over updates",
        "Gaussian differential privacy, Dong, Roth and Su: mu sqrt(T)",
        f"{UNIT}test_privacy.py::test_epsilon_agrees_with_an_accountant",
        "1e-7 of epsilon",
        edited("edgefl.learning.privacy:epsilon_of", "math.sqrt(updates) / noise", "updates / noise"),
    ),
    Fault(
        "learning.noise_of_shares",
        "the server's noise is scaled by the mean share, not the largest",
        "sensitivity of a weighted mean",
        f"{UNIT}test_privacy.py::test_noise_has_the_stated_deviation",
        "4.5 standard errors of the standard deviation",
        edited("edgefl.learning.updates.release:PrivateRelease.averaged", "shares.max()", "shares.mean()"),
    ),
    Fault(
        "learning.clip",
        "changes are clipped at twice the bound",
        "clip_norm",
        f"{UNIT}test_privacy.py::test_long_changes_are_clipped_and_short_ones_left_as_they_are",
        "1e-6 of a parameter",
        edited(
            "edgefl.learning.updates.release:PrivateRelease.limited",
            "scale = settings.clip_norm /",
            "scale = 2 * settings.clip_norm /",
        ),
    ),
    Fault(
        "learning.quantiser_bias",
        "a quantiser rounds down",
        "QSGD, Alistarh et al., 2017: unbiased",
        f"{UNIT}test_codecs.py::test_qsgd_is_unbiased_with_the_variance_of_its_closed_form",
        "4.5 standard errors of a number, 4 of the variance",
        edited(
            "edgefl.learning.codecs.qsgd:Qsgd.compress",
            "(scaled + drawn.view_as(scaled)).floor()",
            "(scaled + 0.0 * drawn.view_as(scaled)).floor()",
        ),
    ),
    Fault(
        "learning.fedpaq_half",
        "uniform quantisation rounds to the nearest level",
        "FedPAQ, Reisizadeh et al., 2020: unbiased",
        f"{UNIT}test_codecs.py::test_uniform_quantisation_is_unbiased_with_the_variance_of_its_closed_form",
        "4.5 standard errors of a number, 4 of the variance",
        edited(
            "edgefl.learning.codecs.fedpaq:FedPaq.compress",
            "(scaled + rng.uniform(wanted.shape[1])).floor()",
            "scaled.round()",
        ),
    ),
    Fault(
        "learning.damping",
        "messages with feedback are not damped",
        "1 / (1 + omega) makes an unbiased codec a contraction",
        f"{UNIT}test_codec_distortion.py::test_a_codec_that_states_an_omega_divides_by_one_plus_omega",
        "4 standard errors of the residual's square",
        edited("edgefl.learning.codecs:Unbiased.damping", "1 / (1 + self.omega)", "1.0"),
    ),
    Fault(
        "learning.residual",
        "a residual forgets what was left out before",
        "error feedback, Stich and Karimireddy, 2020",
        f"{UNIT}test_codecs.py::test_messages_and_residual_sum_to_all_changes",
        "exact where numbers are sent as they are, otherwise 0.00001",
        edited(
            "edgefl.learning.codecs:FeedbackCodec.encode",
            "{RESIDUAL: wanted - rows}",
            "{RESIDUAL: change - rows}",
        ),
    ),
    Fault(
        "learning.index_bits",
        "each position of a chosen number has one bit too few",
        "ceil(log2 M) bits a position",
        f"{UNIT}test_codecs.py::test_bits_of_a_logistic_model_by_hand",
        "exact",
        edited(
            "edgefl.learning.codecs:index_bits",
            "many * math.ceil(math.log2(count))",
            "many * math.floor(math.log2(count))",
        ),
    ),
    Fault(
        "learning.rand_k_scale",
        "rand-k without feedback is not scaled up",
        "unbiased by M / k",
        f"{UNIT}test_codecs.py::test_rand_k_without_feedback_is_unbiased_with_the_variance_of_its_closed_form",
        "4.5 standard errors of a number, 4 of the variance",
        edited(
            "edgefl.learning.codecs.rand_k:RandK.compress",
            "1.0 if self.error_feedback else sizes.count / count",
            "1.0",
        ),
    ),
    Fault(
        "learning.theory_noise",
        "the measured noise does not shrink with the batch",
        "variance of a batch without replacement",
        "tests/unit/learning/federation/test_theory.py::test_noise_is_that_without_replacement",
        "the spread of the ratio over devices of 300 to 600 samples",
        edited(
            "edgefl.learning.federation.theory:measure", "np.array(variances) / batch", "np.array(variances)"
        ),
    ),
    Fault(
        "learning.auc_ties",
        "ties count as wins in the area under the curve",
        "Mann and Whitney: ties count half",
        f"{UNIT}scores/test_metrics.py::test_auc_is_the_share_of_pairs_in_order",
        "1e-12 of the area",
        edited("edgefl.learning.scores.metrics:_auc", "(ends - (count - 1) / 2)[place]", "ends[place]"),
    ),
)
