module github.com/united-workforce/uwf/examples/agents/echo

go 1.26.0

require (
	github.com/united-workforce/uwf/utilagent v0.1.0
	github.com/stretchr/testify v1.12.1
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
