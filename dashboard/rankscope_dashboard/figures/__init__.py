"""The dashboard's pictures: functions from a report to plotly figures in plain data, and their colours."""
