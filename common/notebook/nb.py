"""All that the notebooks use of the course, under one name: nb.show_diff, nb.chapter(3), nb.gpu()."""
# ruff: noqa: F401  these are names for the notebooks' cells

from common.hardware import plots as sheet_plots
from common.hardware import sheet
from common.hardware.diagram import diagram
from common.machine.device import datasheet, default_device, has_gpu, use_device
from common.machine.limits import measure_limits
from common.machine.survey import survey_apart
from common.notebook import exercise_cells as learn
from common.notebook import places, programs, timelines, widths
from common.notebook.cells import cpu_clock, ready, row_of, run_pairs, seconds_of, show, show_diff, table
from common.notebook.chapter_cells import chapter, show_another, show_code, show_counts, show_xray
from common.notebook.forecast_cells import against, compared, predict
from common.notebook.kernel_check import check_kernel, compiled, need_triton
from common.notebook.markup import card, end
from common.notebook.named_gpu import gpu
from common.notebook.profile_figure import timeline
from common.pairs.pair import ROOT, discover, load, short
from common.show import heatmap, plot
from common.show.formats import bandwidth, binary, digits, seconds, tflops
from common.show.summary import fastest_library
from common.show.tables import grade, origin, ratio, variant
from common.show.words import text as reason_text
from common.stats import Estimate, estimate, verdict
from common.traffic import count, traced
from common.xray.occupancy import MACHINES, WARP
from common.xray.picture import xray
