"""What the paper's tables, metrics and data sets are called on the page."""

from pairflow.report.paper.printed import DATASETS

TITLES = {
    "qm9_results_valid": "QM9: valid molecules",
    "qm9_results_unique": "QM9: unique molecules",
    "qm9_results_novel": "QM9: novel molecules",
    "zinc_results_valid": "ZINC-250k: valid molecules",
    "zinc_results_unique": "ZINC-250k: unique molecules",
    "zinc_results_novel": "ZINC-250k: novel molecules",
    "binary_mnist_results": "MNIST-Binary: FID",
    "cifar10_results": "CIFAR-10: FID and IS",
    "qm9_rect_validity": "QM9, rounds of re-flow: valid molecules",
    "qm9_rect_uniqueness": "QM9, rounds of re-flow: unique molecules",
    "qm9_rect_novelty": "QM9, rounds of re-flow: novel molecules",
    "zinc250k_subset_validity": "ZINC-250k, paired in subsets: valid molecules and time",
    "zinc250k_subset_uniqueness": "ZINC-250k, paired in subsets: unique molecules",
    "zinc250k_subset_novelty": "ZINC-250k, paired in subsets: novel molecules",
    "ffhq_fid": "FFHQ 64 × 64: FID",
    "lm1b_gen_ppl": "LM1B: generative perplexity",
    "lm1b_entropy": "LM1B: unigram entropy",
    "cifar_fid_test": "CIFAR-10: distances to the test images",
    "cifar_nn_distance": "CIFAR-10: nearest training image",
    "mnist_binary_fid_test": "MNIST-Binary: FID to the test images",
    "mnist_binary_nn_distance": "MNIST-Binary: nearest training image",
    "continuous_mnist": "Continuous MNIST: FID",
    "appendix_cifar_fid_check": "CIFAR-10: check with 50,000 samples",
    "appendix_tc_measure": "QM9: conditional total correlation",
    "appendix_forward_velocity_coverage": "Coverage of the forward velocity",
    "computation_cost_table": "Cost",
}
BY_DATASET = (
    "appendix_forward_velocity_coverage",
    "computation_cost_table",
)  # tables with a row per data set
METRICS = {
    "valid": "valid of 1,024",
    "unique": "unique of 1,024",
    "novel": "novel of 1,024",
    "fid": "FID",
    "is": "IS",
    "fid_test": "FID to the test images",
    "fid_dinov2_test": "FD on DINOv2 to the test images",
    "fid_50k": "FID of 50,000 samples",
    "is_50k": "IS of 50,000 samples",
    "nn_l2_train": "L2 to the nearest training image",
    "nn_cosine_dinov2_train": "cosine on DINOv2 with the nearest training image",
    "generative_perplexity": "generative perplexity",
    "entropy": "unigram entropy",
    "total_correlation": "total correlation",
    "dataset_size": "data points",
    "unique_reached": "reached",
    "coverage": "coverage (%)",
    "coverage_predicted": "predicted (%)",
    "pairing_minutes": "pairing (min)",
    "runtime_minutes": "minutes",
}
_OTHERS = {
    "ffhq64": "FFHQ 64 × 64",
    "lm1b_n16": "N = 16",
    "lm1b_n32": "N = 32",
    "lm1b_n64": "N = 64",
    "lm1b_n128": "N = 128",
    "mnist_continuous": "continuous MNIST",
}
NOTES = {
    "nn_l2_train": "No scale is printed; ours is for pixel values from 0 to 1.",
    "nn_cosine_dinov2_train": "The table says that a lower cosine is better.",
    "total_correlation": "The table says nats. But by this estimate ten independent molecules of the data "
    "have 22.5 nats, or 32.5 bits. So the printed values are read as bits, the unit of ours.",
    "pairing_minutes": "Times come from different machines. They are shown, but never judged.",
    "runtime_minutes": "Times come from different machines. They are shown, but never judged. Here the "
    "time of ReDi includes drawing its pairs.",
}


def name_dataset(dataset: str) -> str:
    return DATASETS.get(dataset) or _OTHERS.get(dataset, dataset)
