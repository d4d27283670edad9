module github.com/united-workforce/uwf/util

go 1.26.0

require (
	github.com/goccy/go-yaml v1.19.2
	github.com/santhosh-tekuri/jsonschema/v5 v5.3.1
	github.com/stretchr/testify v1.12.1
	github.com/united-workforce/uwf/internal/thirdparty/cli v0.1.0
	github.com/united-workforce/uwf/internal/thirdparty/jsonschema v0.1.0
	github.com/united-workforce/uwf/internal/thirdparty/lean v0.1.0
	github.com/united-workforce/uwf/protocol v0.1.0
	golang.org/x/sys v0.49.0
	golang.org/x/term v0.47.0
)

require (
	github.com/xrash/smetrics v0.0.0-20240521201337-686a1a2994c1 // indirect
	go.yaml.in/yaml/v3 v3.0.5
)
