"""Write digits.npz, the data set of outside.yaml, from edgefl's digits: python make_digits.py"""

import numpy as np

from edgefl.learning.datasets.digits import Digits

data = Digits().load()
train, test = data.train, data.test
np.savez_compressed("digits.npz", x_train=train.x, y_train=train.y, x_test=test.x, y_test=test.y)
