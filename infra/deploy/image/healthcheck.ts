// Exits with 0 when the server of this container is ready, else with 1.
const answer = await fetch(`http://127.0.0.1:${process.env.PORT}/readyz`)
process.exitCode = answer.ok ? 0 : 1
