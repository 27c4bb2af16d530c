# One image for web and workers; the GPU worker is the same image with devices reserved for it.
FROM python:3.11-slim

# torch.compile builds the code that it generates.
RUN apt-get update && apt-get install --yes --no-install-recommends gcc g++ libc6-dev && rm -rf /var/lib/apt/lists/*

WORKDIR /app
COPY requirements.txt requirements-engine.txt ./
RUN pip install --no-cache-dir --requirement requirements.txt
COPY . .

RUN useradd --create-home pitwall && mkdir /var/lib/pitwall && chown pitwall /var/lib/pitwall
USER pitwall
ENV PITWALL_VAR=/var/lib/pitwall PYTHONUNBUFFERED=1
EXPOSE 8000
