module gpushare

go 1.19
