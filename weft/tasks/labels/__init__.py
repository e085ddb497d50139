"""Shared by tasks that predict labels: batches, splits of one file, class weights, calibration."""
