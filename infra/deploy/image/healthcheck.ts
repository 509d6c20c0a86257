// Exits with 0 if the server in this container is ready, else with 1.
const response = await fetch(`http://127.0.0.1:${process.env.PORT}/readyz`)
process.exitCode = response.ok ? 0 : 1
