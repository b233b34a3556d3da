"""The steps of an evaluation: functions from frames to a frame that only build plans and run nothing."""
