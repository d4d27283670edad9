module github.com/united-workforce/uwf/remote

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/united-workforce/uwf/cas v0.1.0
	github.com/united-workforce/uwf/protocol v0.1.0
	github.com/united-workforce/uwf/util v0.1.0
)
