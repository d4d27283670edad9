module github.com/united-workforce/uwf/cmd/uwf

go 1.26.0

require (
	github.com/united-workforce/uwf/protocol v0.1.0
	github.com/united-workforce/uwf/util v0.1.0
	github.com/united-workforce/uwf/cas v0.1.0
	github.com/united-workforce/uwf/moderator v0.1.0
	github.com/united-workforce/uwf/utilagent v0.1.0
	github.com/urfave/cli/v2 v2.27.7
	github.com/mattn/go-shellwords v1.0.16
	golang.org/x/term v0.47.0
	github.com/stretchr/testify v1.12.1
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	github.com/rogpeppe/go-internal v1.16.0
)
