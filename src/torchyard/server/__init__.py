"""HTTP: requests in, control asked, Run:ai shapes out. Knows neither pages nor engines."""
