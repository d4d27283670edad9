module github.com/united-workforce/uwf/internal/thirdparty/lean

go 1.26.0

require (
	github.com/joho/godotenv v1.5.1
	github.com/oklog/ulid/v2 v2.1.2
	github.com/stretchr/testify v1.12.1
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
