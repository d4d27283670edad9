module github.com/united-workforce/uwf/cmd/uwf-builtin

go 1.26.0

require (
	github.com/united-workforce/uwf/protocol v0.1.0
	github.com/united-workforce/uwf/utilagent v0.1.0
	github.com/stretchr/testify v1.12.1
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	github.com/rogpeppe/go-internal v1.16.0
)
