"""CIFAR-10: small photographs of animals and vehicles."""

from edgefl.learning.datasets._cifar import Cifar, cifar_files


class Cifar10(Cifar):
    """50,000 training and 10,000 test images, 3x32x32 uint8 (0 to 255), 10 balanced classes.

    Samples are [3, 32, 32], RGB; mean and standard deviation are per channel. Source: Krizhevsky, Learning
    Multiple Layers of Features from Tiny Images, 2009, the Python version, read by an unpickler that can only build
    arrays. `root` may be torchvision's folder. Left out: augmentation.
    """

    FILES = cifar_files(
        name="CIFAR-10",
        folder="cifar-10-batches-py",
        archive="cifar-10-python.tar.gz",
        archive_md5="c58f30108f718f92721af3b95e74349a",
        md5={
            "data_batch_1": "c99cafc152244af753f735de768cd75f",
            "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            "data_batch_4": "634d18415352ddfa80567beed471001a",
            "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
            "test_batch": "40351d587109b95175f43aff81a1287e",
            "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
        },
    )
    LABELS, NAMES = b"labels", b"label_names"
