"""Write a trace in the CSV format of SUMO's floating-car data: python make_trace.py > manhattan.fcd.csv

Vehicles follow the mobility model `manhattan`: each arrives at some time, drives for some minutes and leaves. SUMO
simulates this better, with traffic lights and queues: sumo -n town.net.xml -r town.rou.xml --fcd-output town.csv
"""

import numpy as np

from edgefl.mobility.manhattan import Manhattan
from edgefl.rng import Streams

VEHICLES, END_S, STEP_S, HALF_SIDE_M = 40, 360, 3, 300.0

streams = Streams(7)
model = Manhattan(area_factor=1.0, block_m=120.0, speed_min_m_s=6.0, speed_max_m_s=14.0)
movement = model.start(
    np.zeros((VEHICLES, 2)), cell_radius_m=HALF_SIDE_M, min_distance_m=0.0, streams=streams
)
rng = streams("trace")
comes_s = np.maximum(0.0, rng.uniform(-120.0, 240.0, VEHICLES))  # a third of all vehicles begin at time 0
goes_s = comes_s + rng.uniform(90.0, 300.0, VEHICLES)

print("timestep_time;vehicle_id;vehicle_x;vehicle_y")
for time_s in range(0, END_S + 1, STEP_S):
    for vehicle, (x_m, y_m) in enumerate(movement.positions_m(time_s) + HALF_SIDE_M):
        if comes_s[vehicle] <= time_s <= goes_s[vehicle]:
            print(f"{time_s:.2f};car{vehicle};{x_m:.1f};{y_m:.1f}")
