"""CIFAR-100: small photographs of a hundred kinds of objects."""

from edgefl.learning.datasets._cifar import Cifar, cifar_files


class Cifar100(Cifar):
    """50,000 training and 10,000 test images, 3x32x32 uint8 (0 to 255), 100 balanced classes.

    Samples are [3, 32, 32], RGB; mean and standard deviation are per channel. Source: Krizhevsky, Learning
    Multiple Layers of Features from Tiny Images, 2009, the Python version, read by an unpickler that can only build
    arrays. `root` may be torchvision's folder. Left out: the 20 superclasses, and augmentation.
    """

    FILES = cifar_files(
        name="CIFAR-100",
        folder="cifar-100-python",
        archive="cifar-100-python.tar.gz",
        archive_md5="eb9058c3a382ffc7106e4002c42a8d85",
        md5={
            "train": "16019d7e3df5f24257cddd939b257f8d",
            "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
            "meta": "7973b15100ade9c7d40fb424638fde48",
        },
    )
    LABELS, NAMES = b"fine_labels", b"fine_label_names"
