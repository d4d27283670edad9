module github.com/united-workforce/uwf/internal/corpus

go 1.26.0
