module github.com/united-workforce/uwf/engine

go 1.26.0

require (
	github.com/united-workforce/uwf/cas v0.1.0
	github.com/united-workforce/uwf/moderator v0.1.0
	github.com/united-workforce/uwf/protocol v0.1.0
	github.com/united-workforce/uwf/util v0.1.0
	github.com/united-workforce/uwf/step v0.1.0
	github.com/united-workforce/uwf/utilagent v0.1.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/sys v0.49.0
)
