module github.com/united-workforce/uwf/examples/demo

go 1.26

require (
	github.com/stretchr/testify v1.12.1
)
