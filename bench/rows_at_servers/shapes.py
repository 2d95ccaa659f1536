# SPDX-License-Identifier: Apache-2.0
"""Configurations that are trained: tables in the shape of public data sets, and the four models of the paper.

Rows are synthetic, made as they are read, so nothing is downloaded. Tables are cut to MOST_ROWS.
"""
import dataclasses

MOST_ROWS = 250_000
TABLES = {  # rows of the published tables
    "kaggle": [1461, 581, 9214729, 2031648, 306, 24, 12471, 634, 4, 90948, 5633, 7607629, 3183, 28, 14825, 4995567, 11,
               5606, 2172, 4, 6431684, 18, 16, 272266, 105, 138045],
    "avazu": [8, 4680, 7567, 27, 8380, 550, 36, 2512738, 6385037, 8165, 6, 5, 2621, 9, 10, 434, 5, 69, 173, 61],
    "terabyte": [63566284, 30875, 15297, 7296, 19902, 4, 6519, 1340, 63, 39128706, 945108, 253624, 11, 2209, 10074, 75,
                 4, 964, 15, 76751901, 7312994, 54088044, 347447, 11111, 98, 35],
}
DENSE_COLUMNS = {"kaggle": 13, "avazu": 1, "terabyte": 13}
# A model's layers; DIM stands for the dimension of a row. Layers over lookups are narrower than the paper's.
MODELS = {
    "dlrm": 'kind = "dlrm"\nbottom = [512, 256, DIM]\ntop = [512, 256, 1]\n',
    "wide_and_deep": 'kind = "wide_and_deep"\ndeep = [256, 256, 256]\ndeep_input = "dense"\n',
    "deep_cross": 'kind = "deep_cross"\nbottom = [512, 256, DIM]\nover = [256, 64, 1]\n',
    "deep_fm": 'kind = "deep_fm"\ndeep = [64, 64, 64, 1]\ndeep_input = "rows"\n',
}
ENOUGH_ROWS = 1 << 23  # of data; a row is made when it is read


@dataclasses.dataclass(frozen=True)
class Shape:
    """One model over one set of tables."""
    model: str = "dlrm"
    data: str = "kaggle"
    dim: int = 48
    zipf: float = 1.2
    batch: int = 8192
    slices: int = 8

    def text(self, most_rows=MOST_ROWS):
        """The configuration. Every iteration has a line of metrics, of its own batch alone."""
        parts = [f"""[data]
format = "synthetic"
[data.synthetic]
shape = "columns"
rows = {ENOUGH_ROWS}
eval_rows = 4096
[data.synthetic.planted] # labels by the ids of some columns, so that making them costs little
columns = 0
crosses = 0
[embedding.optimizer]
kind = "rowwise_adagrad"
learning_rate = 0.02
[model]
{MODELS[self.model].replace("DIM", str(self.dim))}[optimizer]
kind = "sgd"
learning_rate = 0.01
[train]
batch_size = {self.batch}
slices = {self.slices}
log_every = 1
window = {self.batch}
[train.checkpoint]
at_end = false
"""]
        parts += [f'[[data.synthetic.dense]]\nname = "I{column}"\nmaximum = 10000\n'
                  for column in range(1, DENSE_COLUMNS[self.data] + 1)]
        parts += [f"""[[workload.lines]]
kind = "fixed"
count = 1
mean = 1
rows = {min(rows, most_rows)}
law = "zipf"
zipf = {self.zipf}
dims = [{self.dim}]
""" for rows in TABLES[self.data]]
        return "".join(parts)
